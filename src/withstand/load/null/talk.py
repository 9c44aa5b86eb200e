"""What passes between the null server and its host: a rule of play or a question down, an account up. JSON lines."""

import msgspec


class Begin(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Forget what was; from now on serve like this."""

    gap_ns: int
    """From the request's arrival to the first token, and from token to token."""
    tokens: int
    """Of each streamed answer, at least 2; an answer that is not streamed has one and comes at once."""
    near_ns: int
    """So long before a token is due the server stays awake for it; 0 = never, for whoever shares its core."""


class Tell(msgspec.Struct, frozen=True, tag=True):
    """Give account of what was served since the last ``Begin``."""


class Served(msgspec.Struct, frozen=True):
    """One answer. Times are monotonic ns; a token's true time lies between ``began_ns`` and ``ended_ns``."""

    number: int
    """As the request's text had it."""
    arrived_ns: int
    """When the request was here, by the kernel's stamp where there is one."""
    began_ns: list[int]
    """Just before each token was handed to the kernel."""
    ended_ns: list[int]
    """Just after."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What was served, and what it cost the server."""

    served: tuple[Served, ...]
    busy_ns: int
    """Time that was not spent waiting."""
    late_p99_ns: int
    """How far behind its own schedule it wrote."""
    late_max_ns: int


class Listening(msgspec.Struct, frozen=True):
    """The server's first word."""

    port: int
