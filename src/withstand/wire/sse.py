r"""Server-sent events, after the WHATWG's rules, from bytes that may be cut anywhere.

Lines end with ``\n``, ``\r\n`` or ``\r``; a blank line ends an event; ``data`` lines of one event are joined;
comments and unknown fields are nothing. The usual event, one line ``data: {…}``, takes a short way.
"""

EVENT_BYTES_MAX = 64 << 20
_BOM = b"\xef\xbb\xbf"

Event = tuple[bytes | None, bytes]
"""(The event's type where it has one, its data)."""


class EventTooLargeError(Exception):
    """An event that does not end; somebody sends garbage."""


class SseParser:
    """Bytes in, events out."""

    __slots__ = ("_begun", "_held_cr", "_tail")

    def __init__(self) -> None:
        self._tail = b""
        self._held_cr = False
        self._begun = False

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete.

        Raises:
            EventTooLargeError: more than 64 MiB without an end.
        """
        if not self._begun:
            data = self._first(data)
            if not self._begun:
                return []
        if self._held_cr or b"\r" in data:
            data = self._normalised(data)
        whole = self._tail + data if self._tail else data
        *blocks, self._tail = whole.split(b"\n\n")
        if len(self._tail) > EVENT_BYTES_MAX:
            raise EventTooLargeError
        return [event for block in blocks if (event := _event(block))]

    def close(self) -> list[Event]:
        """The last event, when the stream ended without the blank line that it owed."""
        block, self._tail = self._tail, b""
        event = _event(block)
        return [event] if event else []

    def _first(self, data: bytes) -> bytes:
        """The stream's first bytes without a byte order mark, which may come in pieces."""
        start = self._tail + data
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._tail = start
            return b""
        self._tail, self._begun = b"", True
        return start.removeprefix(_BOM)

    def _normalised(self, data: bytes) -> bytes:
        r"""Every line end as ``\n``. A ``\r`` at the end waits: the next byte may be its ``\n``."""
        if self._held_cr:
            data = b"\r" + data
        self._held_cr = data.endswith(b"\r")
        if self._held_cr:
            data = data[:-1]
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _event(block: bytes) -> Event | None:
    if block.startswith(b"data: ") and b"\n" not in block:
        return None, block[6:]
    kind, data = None, []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            kind = value
    return (kind, b"\n".join(data)) if data else None
