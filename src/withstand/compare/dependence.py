"""How sure is the mean of values that hang together? Requests queue behind each other: they are no independent draws.

The variance is the block bootstrap's over time, in its closed form: that of overlapping batch means (Meketon and
Schmeiser 1984), with the block length chosen from the values by their autocorrelation (Politis and White 2004).

No resampling: the answer is exact, the same every time, and costs one pass. It knows numbers in order, no metrics.
"""

import math
from collections.abc import Sequence
from itertools import accumulate

import msgspec

_BINS_MAX = 1024
"""Longer series are averaged in bins first: the mean's variance stays the same."""
_BLOCKS_MIN = 15
_VALUES_MIN = 30
_SAFETY = 2.0
_QUIET_LAGS_MIN = 5
_QUIET = 2.0


class Sureness(msgspec.Struct, frozen=True):
    """Of a mean over time."""

    error: float
    """Its standard error."""
    freedom: float
    """Degrees of freedom of that error, for Student's t."""
    settled: bool
    """False = the series is too short for its own memory: the true error is larger by an unknown factor."""


def sureness(values: Sequence[float], memory_of: Sequence[float] | None = None) -> Sureness | None:
    """Of the mean of ``values``, which are in the order of time; None where there are too few to say."""
    if len(values) < _VALUES_MIN:
        return None
    bins = _binned(values)
    memory = _binned(memory_of) if memory_of is not None else bins
    wanted = max(math.ceil(_SAFETY * _block_length(memory)), math.ceil(len(bins) ** (1 / 3)))
    longest = max(1, len(bins) // _BLOCKS_MIN)
    length = min(wanted, longest)
    freedom = max(1.0, 1.5 * (len(bins) / length - 1))
    return Sureness(error=_batch_error(bins, length), freedom=freedom, settled=wanted <= longest)


def _binned(values: Sequence[float]) -> list[float]:
    """At most ``_BINS_MAX`` means of stretches of equal length; a rest at the end that fills no bin is left out."""
    width = -(-len(values) // _BINS_MAX)
    if width == 1:
        return list(values)
    return [math.fsum(values[i : i + width]) / width for i in range(0, len(values) - width + 1, width)]


def _batch_error(values: Sequence[float], length: int) -> float:
    """The standard error of the mean by the means of all blocks of ``length``."""
    n = len(values)
    mean = math.fsum(values) / n
    sums = [0.0, *accumulate(value - mean for value in values)]
    squares = math.fsum((sums[i + length] - sums[i]) ** 2 for i in range(n - length + 1))
    return math.sqrt(squares / (length * (n - length + 1)) * n / (n - length) / n) if n > length else 0.0


def _block_length(values: Sequence[float]) -> int:
    """Politis & White's choice for overlapping blocks: cube root of n times how far the values remember."""
    n = len(values)
    mean = math.fsum(values) / n
    centred = [value - mean for value in values]
    variance = math.fsum(c * c for c in centred) / n
    if variance <= 0:
        return 1
    covariances = _covariances(centred, variance)
    reach = len(covariances) - 1
    weights = [min(1.0, 2 * (1 - lag / (reach + 1))) for lag in range(1, reach + 1)]
    spectrum = variance + 2 * math.fsum(w * c for w, c in zip(weights, covariances[1:], strict=True))
    slope = 2 * math.fsum(lag * w * c for lag, (w, c) in enumerate(zip(weights, covariances[1:], strict=True), 1))
    if spectrum <= 0:
        return max(1, reach)
    return max(1, math.ceil(math.cbrt(1.5 * slope * slope / (spectrum * spectrum) * n)))


def _covariances(centred: Sequence[float], variance: float) -> list[float]:
    """Autocovariances up to twice the lag after which several in a row are no more than noise."""
    n = len(centred)
    noise = _QUIET * math.sqrt(math.log10(n) / n) * variance
    quiet_lags = max(_QUIET_LAGS_MIN, math.isqrt(int(math.log10(n) ** 2)))
    found, quiet = [variance], 0
    last = n // 2
    lag = 0
    while lag < last:
        lag += 1
        found.append(math.fsum(map(_product, centred, centred[lag:])) / n)
        quiet = quiet + 1 if abs(found[-1]) < noise else 0
        if quiet == quiet_lags:
            last = min(last, 2 * max(1, lag - quiet))
    return found[: last + 1]


def _product(a: float, b: float) -> float:
    return a * b
