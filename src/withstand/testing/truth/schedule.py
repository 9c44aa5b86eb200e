"""When the tokens of an answer are due: seeded arithmetic. No clock is read here, and nothing is known of bytes."""

import math
from collections.abc import Iterator
from random import Random
from typing import Final

import msgspec

from withstand.errors import UsageError

KINDS: Final = ("none", "exp", "uniform", "lognormal")
_WANTED = "none, exp, uniform:MS or lognormal:SIGMA"
_SEED_STRIDE = 0x9E3779B97F4A7C15
_FIRST, _GAPS = 0, 1


class Schedule(msgspec.Struct, frozen=True):
    """The pace of an answer, counted from the request's last byte.

    ``jitter`` is drawn for each gap, ``ttft_jitter`` for the first token: ``none``, ``exp`` (exponential),
    ``uniform:MS`` (plus or minus that much), ``lognormal:SIGMA``. All of them keep the mean.
    ``tokens`` holds where the request names no length; an answer ends by itself after ``stop_after`` tokens.
    """

    ttft_ms: float = 50.0
    itl_ms: float = 10.0
    tokens: int = 20
    jitter: str = "none"
    ttft_jitter: str = "none"
    seed: int = 0
    stop_after: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be played.

        Raises:
            UsageError: the field and its cure.
        """
        _need(self.ttft_ms >= 0 and math.isfinite(self.ttft_ms), "ttft_ms", self.ttft_ms, "0 or more milliseconds")
        _need(self.itl_ms >= 0 and math.isfinite(self.itl_ms), "itl_ms", self.itl_ms, "0 or more milliseconds")
        _need(self.tokens >= 1, "tokens", self.tokens, "1 or more")
        _need(self.stop_after is None or self.stop_after >= 1, "stop_after", self.stop_after, "1 or more")
        _jitter("jitter", self.jitter, self.itl_ms)
        _jitter("ttft_jitter", self.ttft_jitter, self.ttft_ms)


def offsets_ns(schedule: Schedule, count: int, number: int) -> Iterator[int]:
    """The due time of each of ``count`` tokens; ``number`` tells requests of one seed apart."""
    due_ms = next(_draws(schedule, _FIRST, number))
    gaps_ms = _draws(schedule, _GAPS, number)
    for _ in range(count):
        yield round(due_ms * 1e6)
        due_ms += next(gaps_ms)


def _draws(schedule: Schedule, which: int, number: int) -> Iterator[float]:
    """Endless values, each ``mean_ms`` on average."""
    text, mean_ms = (schedule.ttft_jitter, schedule.ttft_ms) if which == _FIRST else (schedule.jitter, schedule.itl_ms)
    kind, amount = _jitter("jitter", text, mean_ms)
    if kind == "none" or mean_ms == 0:
        while True:
            yield mean_ms
    random = Random((schedule.seed * _SEED_STRIDE) ^ (number * 2 + which))
    while True:
        yield _draw(random, kind, mean_ms, amount)


def _draw(random: Random, kind: str, mean_ms: float, amount: float) -> float:
    if kind == "exp":
        return random.expovariate(1 / mean_ms)
    if kind == "uniform":
        return mean_ms + random.uniform(-amount, amount)
    return mean_ms * math.exp(random.gauss(0.0, amount) - amount * amount / 2)


def _jitter(field: str, text: str, mean_ms: float) -> tuple[str, float]:
    """(Kind, amount) of ``uniform:3``."""
    kind, _, number = text.partition(":")
    try:
        amount = float(number or 0)
    except ValueError:
        amount = math.nan
    _need(kind in KINDS and math.isfinite(amount) and amount >= 0, field, text, _WANTED)
    _need(kind != "uniform" or amount <= mean_ms, field, text, f"at most the mean, {mean_ms:g} ms, to keep it")
    return kind, amount


def _need(holds: bool, field: str, value: object, wanted: str) -> None:
    if not holds:
        raise UsageError(f"schedule.{field}: {value!r} cannot be played; give {wanted}.")
