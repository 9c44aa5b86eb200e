r"""Server-sent events, after the WHATWG's rules, from bytes that may be cut anywhere.

Lines end with ``\n``, ``\r\n`` or ``\r``; a blank line ends an event; ``data`` lines of one event are joined;
comments and unknown fields are nothing.
"""

EVENT_BYTES_MAX = 16 << 20
_BOM = b"\xef\xbb\xbf"

Event = tuple[bytes | None, bytes]
"""(The event's type where it has one, its data)."""


class EventTooLargeError(Exception):
    """An event that does not end; somebody sends garbage."""


class SseParser:
    """Bytes in, events out."""

    __slots__ = ("_after_cr", "_begun", "_last", "_pieces", "_size", "_tail", "trailed")

    def __init__(self) -> None:
        self.trailed = False
        """Whether something has come behind the last event of those that were fed last."""
        self._tail = b""
        self._pieces: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._last = b""
        self._begun = False

    @property
    def idle(self) -> bool:
        """Whether an event has ended here, and nothing of the next is known: what comes can be read by itself."""
        return self._begun and not self._size and not self._after_cr

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete.

        Raises:
            EventTooLargeError: more than 16 MiB without an end.
        """
        if not self._begun:
            data = self._first(data)
            if not self._begun:
                return []
        if data and (self._after_cr or b"\r" in data):
            data = self._normalised(data)
        if b"\n\n" not in self._last + data:
            return self._keep(data)
        whole = b"".join((self._tail, *self._pieces, data)) if self._size else data
        *blocks, self._tail = whole.split(b"\n\n")
        self._pieces.clear()
        self._size = len(self._tail)
        self._last = self._tail[-1:]
        self._check_size()
        events = [_event(block) for block in blocks]
        self.trailed = bool(self._tail) or events[-1:] == [None]
        return [event for event in events if event]

    def _keep(self, data: bytes) -> list[Event]:
        """Part of an event: pieces are joined once its end is there, or a long one would be copied again and again."""
        if data:
            self._pieces.append(data)
            self._last = data[-1:]
        self._size += len(data)
        self._check_size()
        return []

    def _check_size(self) -> None:
        if self._size > EVENT_BYTES_MAX:
            raise EventTooLargeError

    def close(self) -> list[Event]:
        """The last event, when the stream ended without the blank line that it owed."""
        block = b"".join((self._tail, *self._pieces))
        self._tail, self._last, self._size = b"", b"", 0
        self._pieces.clear()
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
        r"""Every line end as ``\n``. A ``\r`` at the end is one at once; a ``\n`` behind it is no second one."""
        if self._after_cr:
            data = data.removeprefix(b"\n")
        self._after_cr = data.endswith(b"\r")
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
