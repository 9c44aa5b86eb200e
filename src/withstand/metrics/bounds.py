"""When a bound on our own error matters: beside the number it bounds, and beside what few answers leave open anyway.

Why the limits are these: decision 005.
"""

import math
from collections.abc import Iterable, Iterator

import msgspec

from withstand.metrics.summary import Distribution, Off, StageSummary

LIMITS = {"p50": 0.01, "p99": 0.05}
"""The third digit of what is typical; of a p99 the second, which is all that ten thousand answers tell of it."""
TIMES = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL"}
_PROMISE_MS = 0.1
"""To so much our times are meant to be true; nothing below it is worth a doubt."""
_DECIMALS = 2
"""Nothing is shown finer."""


class Bound(msgspec.Struct, frozen=True):
    """A shown number and by how much it may be wrong through us."""

    key: str
    shown_ms: float
    off_ms: float
    answers: int

    def over(self, share: float) -> bool:
        """Whether it could change the number by more than this share of it."""
        return round(self.off_ms, _DECIMALS) > max(_PROMISE_MS, share * self.shown_ms)

    def matters(self, share: float) -> bool:
        """Whether it is over this share, and over what so few answers leave open."""
        return self.over(max(share, self._chance))

    @property
    def _chance(self) -> float:
        """The share of a percentile that so few answers leave open: half of one by the root of those beyond it."""
        beyond = self.answers * (1 - int(self.key[1:]) / 100)
        return 0.5 / math.sqrt(beyond) if beyond else math.inf


def bounds_of(stage: StageSummary, name: str) -> Iterator[Bound]:
    """Of one of ``TIMES``, for the percentiles that have a limit, as far as they are known."""
    yield from (bound for key in LIMITS if (bound := _bound(stage, name, key)))


def _bound(stage: StageSummary, name: str, key: str) -> Bound | None:
    """Of a percentile with a limit, or of the mean; None = not known."""
    shown: Distribution = getattr(stage, name)
    shown_ms = shown.mean if key == "mean" else shown.percentiles.get(key)
    off_ms: float | None = getattr(getattr(stage.client_error, name, Off()), key)
    return None if shown_ms is None or off_ms is None else Bound(key, shown_ms, off_ms, stage.completed)


def unmoved(stage: StageSummary) -> Iterator[str]:
    """The numbers, such as ``e2el.mean``, of which it is known that our own error cannot change a digit that matters.

    Such a percentile is none that ``client_bound`` names. One between two that have a limit is where they are.
    """
    for name in TIMES:
        held = {bound.key for bound in bounds_of(stage, name) if not bound.matters(LIMITS[bound.key])}
        shown: Distribution = getattr(stage, name)
        mean = _bound(stage, name, "mean")
        if mean and mean.shown_ms and not mean.over(LIMITS["p50"]):
            yield f"{name}.mean"
        whole = held == LIMITS.keys()
        yield from (f"{name}.{key}" for key in shown.percentiles if key in held or (whole and _is_between(key)))


def _is_between(key: str) -> bool:
    return 50 <= float(key[1:]) <= 99


def share_moved(stage: StageSummary, number: str) -> float | None:
    """By which share of itself a number, such as ``e2el.mean``, may be wrong through us at most; None = not known."""
    name, _, key = number.partition(".")
    if name not in TIMES or key not in Off.__struct_fields__:
        return None
    bound = _bound(stage, name, key)
    return bound.off_ms / bound.shown_ms if bound and bound.shown_ms else None


def left_open(stages: Iterable[StageSummary], name: str) -> int | None:
    """The fewest answers of a stage whose bound is over its limit, but not over what so few answers leave open.

    None where there is no such stage, or where a bound on that time does matter.
    """
    found = [bound for stage in stages for bound in bounds_of(stage, name)]
    if any(bound.matters(LIMITS[bound.key]) for bound in found):
        return None
    return min((bound.answers for bound in found if bound.over(LIMITS[bound.key])), default=None)
