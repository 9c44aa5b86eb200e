"""Cold TTFT against warm, over all cycles of a run. Pure; times inside are ns."""

import math
from collections.abc import Iterable

import msgspec

from withstand.metrics.fold import StageFold
from withstand.metrics.latency import NS_PER_MS
from withstand.metrics.quantiles import MEAN_N_MIN, distribution, student_t
from withstand.metrics.sample import Sample
from withstand.metrics.summary import ColdStart, Distribution, Interval
from withstand.metrics.welch import Mean, welch

_COLD_LAYER = "cold start"


class Met(msgspec.Struct, frozen=True):
    """What one stage tells of it."""

    cold: bool
    ttft: Sample
    started: int
    """Answers that waited for a start."""
    started_ms: float
    """How long, together."""
    ready_s: float | None
    """Of a server that was started anew before it: until it was ready."""

    @classmethod
    def of(cls, fold: StageFold, *, cold: bool, ready_s: float | None) -> "Met":
        """Of a stage's records."""
        layers = fold.layers
        return cls(cold, fold.latencies.ttft, layers.started, layers.layers_ms.get(_COLD_LAYER, 0.0), ready_s)


def cold_start(by: str, met: Iterable[Met]) -> ColdStart | None:
    """Of all stages that count, in any order; None where no cold one is among them."""
    sides = {True: Sample(), False: Sample()}
    started = {True: 0, False: 0}
    starts_ms: list[float] = []
    for one in met:
        ready_ns = int((one.ready_s or 0.0) * 1e9) if one.cold else 0
        for rank in range(len(one.ttft)):
            sides[one.cold].add(int(one.ttft.ranked(rank)) + ready_ns)
        started[one.cold] += one.started
        if one.cold and one.ready_s is not None:
            starts_ms.append(one.ready_s * 1000)
        elif one.cold and one.started:
            starts_ms += [one.started_ms / one.started] * one.started
    if not len(sides[True]):
        return None
    cold, warm = (distribution(sides[side], NS_PER_MS) for side in (True, False))
    return ColdStart(
        by=by,
        cold=cold,
        warm=warm,
        cold_started=started[True],
        warm_started=started[False],
        start_mean=math.fsum(starts_ms) / len(starts_ms) if starts_ms else None,
        extra=None if cold.mean is None or warm.mean is None else cold.mean - warm.mean,
        extra_interval=_apart(cold, warm),
    )


def _apart(a: Distribution, b: Distribution) -> Interval | None:
    """95 % of the difference of two means."""
    sides = [(one.n, one.mean, one.std) for one in (a, b)]
    known = [(n, mean, std) for n, mean, std in sides if n is not None and mean is not None and std is not None]
    if len(known) < len(sides) or min(n for n, _, _ in known) < MEAN_N_MIN:
        return None
    (_, mean_a, _), (_, mean_b, _) = known
    found = welch(*(Mean(std / math.sqrt(n - 1), n - 1) for n, _, std in known))  # the std is the population's
    half = student_t(found.freedom) * found.error
    return Interval(low=mean_a - mean_b - half, high=mean_a - mean_b + half)
