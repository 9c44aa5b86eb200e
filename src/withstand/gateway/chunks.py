"""Chunks, in which HTTP/1.1 frames a body whose length is not known beforehand: pure."""

END = b"0\r\n\r\n"


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
