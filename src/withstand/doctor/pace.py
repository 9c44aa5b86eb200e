"""How long requests will take, by those that were answered: so much, and so much more for each token."""

from collections.abc import Sequence
from statistics import median

import msgspec

from withstand.doctor.heard import NS_PER_MS, Heard


class Load(msgspec.Struct, frozen=True):
    """What a step asks."""

    requests: int
    tokens: int
    """Of each answer."""


class Pace(msgspec.Struct, frozen=True):
    """A path's, in ms."""

    first_ms: float
    """An answer without tokens."""
    token_ms: float

    def seconds(self, load: Load) -> float:
        """One behind the other."""
        return load.requests * (self.first_ms + load.tokens * self.token_ms) * NS_PER_MS / 1e9


def pace_of(short: Sequence[Heard], long: Sequence[Heard]) -> Pace | None:
    """The line through the medians of both; None = too little was answered."""
    few, many = _middle(short), _middle(long)
    if few is None or many is None:
        return None
    token_ms = max(0.0, (many[1] - few[1]) / (many[0] - few[0])) if many[0] > few[0] else 0.0
    return Pace(first_ms=max(0.0, few[1] - few[0] * token_ms), token_ms=token_ms)


def _middle(answers: Sequence[Heard]) -> tuple[float, float] | None:
    """(Tokens, ms)."""
    times = [(heard.tokens, e2el_ms) for heard in answers if (e2el_ms := heard.e2el_ms) is not None]
    return (median(n for n, _ in times), median(ms for _, ms in times)) if times else None


def foretold(what: str, load: Load, pace: Pace | None) -> str:
    """``What the hop costs: 82 requests, about 4 min …``; short waits are not foretold."""
    said = f"{what}: {load.requests} requests"
    seconds = pace.seconds(load) if pace else 0.0
    if seconds < 2:
        return f"{said} …"
    return f"{said}, about {seconds:.0f} s …" if seconds < 120 else f"{said}, about {seconds / 60:.0f} min …"
