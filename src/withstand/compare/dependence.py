"""How sure is the mean of values that hang together? Requests queue behind each other: they are no independent draws.

The run is taken apart into waves over its length: the slowest few cosines, each so slow that it spans several times
the series' memory. Their amplitudes are nearly independent and each is as large as chance makes the mean, so their
mean square is the mean's variance and Student's t with as many degrees of freedom as waves is exact for long series
(Mueller 2007; Lazarus, Lewis, Stock and Watson 2018). A drift over the run is a slow wave too, and counts as unsure.

It is what a block bootstrap over time converges to, in closed form: no resampling, the same answer every time. How
many waves there are is found from the memory; where fewer than four fit, the series is too short to tell. It knows
numbers in order, no metrics.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from operator import mul

import msgspec

_BINS_MAX = 1024
"""Longer series are averaged in bins first: the slow waves stay the same."""
_VALUES_MIN = 30
_WAVES_MIN = 4
_WAVES_MAX = 24
"""More would add little: Student's point at 24 is 5 % above the normal one."""
_MEMORIES_A_WAVE = 5.0
"""Half a wave of the fastest cosine spans so many memory lengths."""
_WINDOW = 5.0
"""Sokal's: the memory is summed up over lags of up to five times itself."""


class Sureness(msgspec.Struct, frozen=True):
    """Of a mean over time."""

    waves: tuple[float, ...]
    """Amplitudes, each as large as chance makes the mean; of two series with one schedule they may be subtracted."""
    lengths_needed: float
    """How many times as long the series must be to tell its own memory; 1 = it is long enough."""

    @property
    def error(self) -> float:
        """The mean's standard error; for Student's t it has as many degrees of freedom as there are waves."""
        return root_mean_square(self.waves)

    @property
    def settled(self) -> bool:
        """False = the series is too short for its memory: the true error is larger by an unknown factor."""
        return self.lengths_needed <= 1


def root_mean_square(values: Sequence[float]) -> float:
    """Of at least one value."""
    return math.sqrt(math.fsum(map(mul, values, values)) / len(values))


def sureness(values: Sequence[float], bins_remembered: float | None = None) -> Sureness | None:
    """Of the mean of ``values``, which are in the order of time; None where there are too few to say.

    ``bins_remembered`` is that of another series at the same instants, which shows better what hangs together.
    """
    if len(values) < _VALUES_MIN:
        return None
    bins = _binned(values)
    room = len(bins) / (_MEMORIES_A_WAVE * (bins_remembered or memory(bins)))
    waves = min(_WAVES_MAX, max(_WAVES_MIN, int(room)))
    return Sureness(_amplitudes(bins, waves), max(1.0, _WAVES_MIN / room))


def memory_in_bins(values: Sequence[float]) -> float:
    """The memory of a series, in the bins that ``sureness`` looks at."""
    return memory(_binned(values))


def memory_in_values(values: Sequence[float]) -> float:
    """The same, in values."""
    return _width(values) * memory_in_bins(values)


def _width(values: Sequence[float]) -> int:
    """So many values are a bin."""
    return -(-len(values) // _BINS_MAX)


def _binned(values: Sequence[float]) -> list[float]:
    """At most ``_BINS_MAX`` means of stretches of equal length; a rest at the end that fills no bin is left out."""
    width = _width(values)
    if width == 1:
        return list(values)
    return [math.fsum(values[i : i + width]) / width for i in range(0, len(values) - width + 1, width)]


def _amplitudes(values: Sequence[float], waves: int) -> tuple[float, ...]:
    """Of the slowest waves, scaled like the mean."""
    n = len(values)
    if min(values) == max(values):
        return (0.0,) * waves
    scale = math.sqrt(2) / n
    return tuple(scale * math.fsum(map(mul, values, _cosine(n, wave))) for wave in range(1, waves + 1))


@lru_cache(maxsize=8 * _WAVES_MAX)
def _cosine(n: int, halves: int) -> tuple[float, ...]:
    """So many half waves over n values; orthogonal to each other and to the mean."""
    step = math.pi * halves / n
    return tuple(math.cos(step * (i + 0.5)) for i in range(n))


def memory(values: Sequence[float]) -> float:
    """How many values count as one: 1 + 2 x the sum of their autocorrelations (Sokal's window), at least 1."""
    n = len(values)
    mean = math.fsum(values) / n
    centred = [value - mean for value in values]
    squares = math.fsum(map(mul, centred, centred))
    length = 1.0
    if squares <= 0:
        return length
    for lag in range(1, n // 2):
        length += 2 * math.fsum(map(mul, centred, centred[lag:])) / squares
        if lag >= _WINDOW * length:
            break
    return max(1.0, length)
