"""Chunks, in which HTTP/1.1 frames a body whose length is not known beforehand: pure."""

END = b"0\r\n\r\n"
_BREAK = b"\r\n"


def chunk(data: bytes) -> bytes:
    """One; ``data`` is not empty, for an empty chunk is the end."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def joined(raw: bytes) -> bytes:
    """What stands in chunks; of chunks that are cut off, what there is."""
    parts = []
    while raw:
        size, _, raw = raw.partition(b"\r\n")
        try:
            length = int(size.partition(b";")[0], 16)
        except ValueError:
            break
        parts.append(raw[:length])
        raw = raw[length + 2 :]
    return b"".join(parts)


class Unframing:
    """Takes chunks off a body that comes in pieces, cut anywhere. Extensions and trailers go with them."""

    __slots__ = ("_left", "_line", "_over")

    def __init__(self) -> None:
        self._line = b""
        """What has come of a chunk's size."""
        self._left = 0
        """Bytes of the chunk that are still to come, its line break among them."""
        self._over = False

    def body_in(self, data: bytes) -> bytes:
        """What of the body is in the next piece; nothing behind the last chunk, or behind what is none."""
        data, self._line = self._line + data, b""
        parts = []
        while data and not self._over:
            if self._left:
                parts.append(data[: max(0, self._left - len(_BREAK))])
                taken = min(self._left, len(data))
                self._left, data = self._left - taken, data[taken:]
                continue
            line, ended, rest = data.partition(_BREAK)
            if not ended:
                self._line = line
                break
            self._left, data = _size(line) + len(_BREAK), rest
            self._over = self._left == len(_BREAK)
        return b"".join(parts)


def _size(line: bytes) -> int:
    try:
        return max(0, int(line.partition(b";")[0], 16))
    except ValueError:
        return 0
