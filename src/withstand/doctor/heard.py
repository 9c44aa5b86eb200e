"""One answer as it was heard: every read with its stamp, and what the answer said."""

import msgspec

from withstand.record import Status

NS_PER_MS = 1e6


class Read(msgspec.Struct, frozen=True):
    """Bytes that were read at once."""

    stamp_ns: int
    size: int
    """Bytes on the wire, framing included."""
    events: int
    """Events with output that ended in it."""
    whole: bool
    """It ends where an event ends."""


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """Times are monotonic ns, of arrivals by the kernel where it tells them."""

    status: Status
    error: str | None = None
    http_status: int | None = None
    version: str = ""
    """Of HTTP, in the status line: ``1.1``."""
    headers: dict[str, str] = {}
    """Names in lower case."""
    sent_ns: int | None = None
    events_ns: tuple[int, ...] = ()
    end_ns: int | None = None
    left_ns: int | None = None
    """When we closed the connection in the middle of it."""
    reads: tuple[Read, ...] = ()
    text: str = ""
    finish_reason: str | None = None
    usage_tokens: int | None = None
    """Output tokens by the server's usage; None = it told none."""
    prompt_tokens: int | None = None
    streamed: bool = False
    done: bool = False
    """``[DONE]`` came."""
    keep_alive: bool = False
    reused: bool | None = None
    head: bytes = b""
    """The answer's first bytes as they came."""

    @property
    def ok(self) -> bool:
        """A success by every rule of ``withstand run``."""
        return self.status is Status.OK

    @property
    def tokens(self) -> int:
        """By usage; where it tells nothing, events."""
        return len(self.events_ns) if self.usage_tokens is None else self.usage_tokens

    @property
    def ttft_ms(self) -> float | None:
        """First output - sent."""
        return _ms(self.events_ns[0] if self.events_ns else None, self.sent_ns)

    @property
    def e2el_ms(self) -> float | None:
        """Last byte - sent."""
        return _ms(self.end_ns, self.sent_ns)

    @property
    def framed(self) -> bool:
        """The answer's end is told by its framing, not by the connection's."""
        return "chunked" in self.headers.get("transfer-encoding", "").lower() or "content-length" in self.headers

    @property
    def why(self) -> str:
        """What went wrong, for a sentence."""
        return self.error or (f"HTTP {self.http_status}" if self.http_status else self.status.value)


def _ms(later_ns: int | None, earlier_ns: int | None) -> float | None:
    return None if later_ns is None or earlier_ns is None else (later_ns - earlier_ns) / NS_PER_MS
