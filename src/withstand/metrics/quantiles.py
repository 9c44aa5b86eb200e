"""Exact percentiles, and how far each may be off: distribution-free intervals from order statistics.

Percentiles are numpy's ``linear`` ones, as vLLM prints them. The intervals treat the values as independent draws;
requests that queue behind each other are not, so on a busy server the truth is wider: repeat whole runs to see it.
It knows no units but the divisor it is given.
"""

import math
from functools import lru_cache

from withstand.metrics.sample import Sample
from withstand.metrics.summary import PERCENTILES, Distribution, Interval

_TAIL = 0.025
"""What a 95 % interval leaves out on each side."""
_Z = 1.959963984540054
MEAN_N_MIN = 5
"""Student's t asks for normal values; below this the interval would be mostly assumption."""
_FAR_SIGMAS = 8


def percentile(sample: Sample, share: float) -> float:
    """The quantile at ``share`` of 0 … 1 by numpy's ``linear`` rule, of at least one value."""
    place = (len(sample) - 1) * share
    rank = math.floor(place)
    return _lerp(*sample.pair(rank), place - rank)


def _lerp(low: float, high: float, weight: float) -> float:
    """As numpy: from the nearer end, so that the result never leaves [low, high]."""
    if weight < 0.5:
        return low + (high - low) * weight
    return high - (high - low) * (1 - weight)


@lru_cache(maxsize=1024)
def interval_ranks(n: int, share: float) -> tuple[int | None, int | None]:
    """Ranks (from 0) of the two values that enclose the true quantile with at least 95 %, 2.5 % left on each side.

    How many of n values lie below the true quantile is binomial (n, share), whatever their distribution is. None =
    even the smallest or largest value does not bound it.
    """
    spread = math.sqrt(n * share * (1 - share))
    count = max(0, math.floor(n * share - _FAR_SIGMAS * spread))
    chance = _binomial(n, count, share)
    total, low = chance, None
    while total < 1 - _TAIL and count < n:
        if low is None and total > _TAIL:
            low = count
        chance *= (n - count) / (count + 1) * share / (1 - share)
        count += 1
        total += chance
    low = count if low is None else low
    return (low - 1 if low > 0 else None), (count if count < n else None)


def _binomial(n: int, count: int, share: float) -> float:
    ways = math.lgamma(n + 1) - math.lgamma(count + 1) - math.lgamma(n - count + 1)
    return math.exp(ways + count * math.log(share) + (n - count) * math.log1p(-share))


def samples_needed(percent: float) -> int:
    """The fewest values that bound a percentile on both sides: 6 for p50, 368 for p99."""
    share = max(percent, 100 - percent) / 100
    return math.ceil(math.log(_TAIL) / math.log(share))


TELLING = samples_needed(50)
"""Of fewer answers neither a time nor a rate is known: nothing bounds their median, and one more changes the rate."""


def student_t(freedom: float) -> float:
    """The 97.5 % point of Student's t, by the Cornish-Fisher series (Abramowitz & Stegun 26.7.5); freedom >= 4."""
    z = _Z
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))


def distribution(sample: Sample, per_unit: float, *, independent: bool = True) -> Distribution:
    """Everything that is shown of one metric, divided by ``per_unit``; no intervals where values hang together."""
    n = len(sample)
    if not n:
        return Distribution(n=0, percentiles={f"p{p}": None for p in PERCENTILES})
    mean, std = sample.moments()
    intervals = {f"p{p}": _percentile_interval(sample, p / 100, per_unit) for p in PERCENTILES}
    return Distribution(
        n=n,
        mean=mean / per_unit,
        std=std / per_unit,
        min=sample.ranked(0) / per_unit,
        max=sample.ranked(n - 1) / per_unit,
        percentiles={f"p{p}": percentile(sample, p / 100) / per_unit for p in PERCENTILES},
        intervals={"mean": _mean_interval(n, mean / per_unit, std / per_unit), **intervals} if independent else {},
    )


def _percentile_interval(sample: Sample, share: float, per_unit: float) -> Interval:
    low, high = interval_ranks(len(sample), share)
    return Interval(
        low=None if low is None else sample.ranked(low) / per_unit,
        high=None if high is None else sample.ranked(high) / per_unit,
    )


def _mean_interval(n: int, mean: float, std: float) -> Interval:
    if n < MEAN_N_MIN:
        return Interval(low=None, high=None)
    half = student_t(n - 1) * std / math.sqrt(n - 1)  # std is the population's: n - 1 here makes it the sample's
    return Interval(low=mean - half, high=mean + half)
