"""What the server really did for each request: the truth that a client's numbers are held against.

Times are ns on CLOCK_MONOTONIC, which all processes of a host share.
"""

from typing import Any

import msgspec


class Came(msgspec.Struct, frozen=True):
    """A request as it came."""

    version: str
    """Of HTTP: ``1.1``."""
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


class Entry(msgspec.Struct, kw_only=True):
    """A request while it is being served. Times are monotonic ns; None = it has not happened."""

    number: int
    """Order of arrival, from 0; the answer's header X-Truth-Number has it too."""
    request_id: str | None = None
    """The client's X-Request-Id."""
    path: str
    model: str | None = None
    behaviour: str | None = None
    """None = the server refused the request by itself (400, 401, 404)."""
    stream: bool = False
    status: int | None = None
    prompt_chars: int = 0
    prompt_tokens: int = 0
    tokens_planned: int | None = None
    usage_planned: int | None = None
    """The output tokens that usage claims at the answer's end; None = it is never told."""
    finish_planned: str | None = None
    """The finish reason, if the answer comes that far."""
    streamed: bool = False
    """Answered event by event; asked for is ``stream``."""
    body: Any = None
    """The parsed body, if the server keeps bodies."""
    came: Came | None = None
    """The request as it came, if the server keeps requests."""
    connection: int
    """The how-manieth connection, from 0."""
    connection_request: int
    """The how-manieth request on it, from 0."""
    accepted_ns: int
    """When the connection was taken."""
    arrival_ns: int
    """When the first bytes of the request had been read."""
    complete_ns: int
    """When its last byte had been read."""
    received_ns: int | None = None
    """When its last bytes had arrived, by the kernel; None = it does not say (Unix sockets, TLS, macOS)."""
    started_ns: int | None = None
    """The schedule's zero: complete, or later when it waited for a slot."""
    first_write_ns: int | None = None
    token_ns: list[int] = []
    """For each token, just before the write that made it known: no client can have seen it earlier."""
    event_ns: list[int] = []
    """The same for each event that carried output."""
    done_ns: int | None = None
    """Just after the last byte was handed over."""
    aborted_ns: int | None = None
    """When it was noticed that the client had gone before the end."""
    writing_ns: list[int] = []
    """For each of these events, how long it took to write, from its first byte to its last; shorter = broken off."""
    writing_ns_max: int = 0
    """The longest writing of an event, from its first byte to its last: so far is the log itself uncertain."""
    late_ns_max: int = 0
    """How late the server itself was, at worst, against its schedule."""
    blocked_ns: int = 0
    """How long the client did not read."""

    def told(self, tokens: int, at_ns: int) -> None:
        """An output event is known."""
        self.event_ns.append(at_ns)
        if tokens == 1:
            self.token_ns.append(at_ns)
        else:
            self.token_ns += [at_ns] * tokens

    def whole(self, begun_ns: int, out_ns: int) -> None:
        """An output event is out to its last byte."""
        self.writing_ns.append(out_ns - begun_ns)
        self.writing_ns_max = max(self.writing_ns_max, self.writing_ns[-1])


class Served(Entry, frozen=True, kw_only=True):  # type: ignore[misc]  # dataclasses forbid it, structs do not
    """One request as it was served."""

    @property
    def tokens(self) -> int:
        """Tokens that were really written."""
        return len(self.token_ns)

    @property
    def here_ns(self) -> int:
        """When the whole request was here: by the kernel, else when it had been read."""
        return self.complete_ns if self.received_ns is None else self.received_ns

    @property
    def ttft_ms(self) -> float | None:
        """First token - request here."""
        return (self.token_ns[0] - self.here_ns) / 1e6 if self.token_ns else None

    @property
    def tpot_ms(self) -> float | None:
        """(Last token - first token) / (tokens - 1)."""
        if self.tokens < 2:
            return None
        return (self.token_ns[-1] - self.token_ns[0]) / (self.tokens - 1) / 1e6

    @property
    def e2el_ms(self) -> float | None:
        """Last token - request here."""
        return (self.token_ns[-1] - self.here_ns) / 1e6 if self.token_ns else None


_decode = msgspec.json.Decoder(list[Served]).decode


def encode_log(log: list[Entry]) -> bytes:
    """The log as one line of JSON."""
    return msgspec.json.encode(log)


def decode_log(line: bytes) -> list[Served]:
    """The log of one line."""
    return _decode(line)
