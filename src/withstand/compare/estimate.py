"""One number of one run, and how sure it is: means, ratios and percentiles of series that hang together.

Errors are relative, of the number's logarithm: times and rates are compared by their ratio. It knows no metrics.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import mul

import msgspec

from withstand.compare.dependence import Sureness, memory_in_bins, root_mean_square, sureness
from withstand.compare.student import point
from withstand.metrics.summary import Interval

CONFIDENCE = 0.95
TOO_FEW = "too few requests to tell how sure it is"
_TAIL_EVENTS_MIN = 10
"""Independent events beyond a percentile; with fewer, one burst decides it."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A number; without ``error`` nothing is known of its sureness, and ``lack`` says why."""

    value: float
    n: int | None = None
    error: float | None = None
    """Standard error of ``log(value)``."""
    freedom: float = math.inf
    waves: tuple[float, ...] = ()
    """What the error is made of, on the same scale: see ``dependence``."""
    lack: str | None = None
    lengths_needed: float | None = None
    """How many times as long the run must be for an error to be known."""

    @property
    def interval(self) -> Interval | None:
        """Of 95 %."""
        if self.error is None or not self.error:
            return None
        factor = math.exp(self.error * point(CONFIDENCE, self.freedom))
        return Interval(low=self.value / factor, high=self.value * factor)


def unsure(value: float, n: int | None, lack: str) -> Estimate:
    """A number of which only its value is known."""
    return Estimate(value=value, n=n, lack=lack)


def of_mean(value: float, series: Sequence[float]) -> Estimate:
    """``value`` is the mean of the series, up to rounding, or proportional to it."""
    mean = math.fsum(series) / len(series) if series else 0.0
    sure = sureness(series)
    if sure is None or mean <= 0:
        return unsure(value, len(series), TOO_FEW)
    return _estimate(value, len(series), sure, 1 / mean)


def of_ratio(value: float, parts: Sequence[float], wholes: Sequence[float]) -> Estimate:
    """``value`` = sum of parts / sum of wholes: gaps hang together by request, so each request is one draw."""
    total = math.fsum(wholes)
    if not total:
        return unsure(value, 0, TOO_FEW)
    ratio = math.fsum(parts) / total
    sure = sureness([part - ratio * whole for part, whole in zip(parts, wholes, strict=True)])
    if sure is None or ratio <= 0:
        return unsure(value, int(total), TOO_FEW)
    return _estimate(value, int(total), sure, len(parts) / total / ratio)


def of_quantiles(told: Mapping[float, float], series: Sequence[float]) -> dict[float, Estimate]:
    """``told`` holds the series' quantiles by their share: how sure the share is, read back on the scale of values."""
    remembered = memory_in_bins([math.log(value) if value > 0 else 0.0 for value in series])
    ordered = sorted(series)
    found = {}
    for share, value in told.items():
        sure = sureness([1.0 if v <= value else 0.0 for v in series], remembered)
        found[share] = _of_share(value, share, len(series), sure, partial(_at, ordered))
    return found


def of_pooled_quantile(
    value: float, share: float, above: Sequence[float], wholes: Sequence[float], at: Callable[[float], float]
) -> Estimate:
    """The same for values of which each request has several: ``above`` counts those beyond ``value``.

    ``at`` tells the quantile of all of them at a share.
    """
    total = math.fsum(wholes)
    if not total:
        return unsure(value, 0, TOO_FEW)
    ratio = math.fsum(above) / total
    sure = sureness([part - ratio * whole for part, whole in zip(above, wholes, strict=True)])
    if sure is not None:
        sure = msgspec.structs.replace(sure, waves=tuple(-wave * len(wholes) / total for wave in sure.waves))
    return _of_share(value, share, int(total), sure, at)


def _of_share(value: float, share: float, n: int, sure: Sureness | None, at: Callable[[float], float]) -> Estimate:
    if sure is None or value <= 0:
        return unsure(value, n, TOO_FEW)
    if sure.error <= 0:
        return _estimate(value, n, sure, 0.0)
    tail = min(share, 1 - share)
    events = share * (1 - share) / sure.error**2 * tail
    if events < _TAIL_EVENTS_MIN:
        lack = f"fewer than {_TAIL_EVENTS_MIN} independent events lie beyond it: one burst would decide it"
        return Estimate(value=value, n=n, lack=lack, lengths_needed=_TAIL_EVENTS_MIN / events)
    reach = point(CONFIDENCE, len(sure.waves))
    low, high = (at(min(max(share + side * reach * sure.error, 0.0), 1.0)) for side in (-1, 1))
    if low <= 0:
        return unsure(value, n, TOO_FEW)
    return _estimate(value, n, sure, -math.log(high / low) / (2 * reach * sure.error))


def _at(ordered: Sequence[float], share: float) -> float:
    """The value at a share, by numpy's ``linear`` rule."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _estimate(value: float, n: int, sure: Sureness, scale: float) -> Estimate:
    """``scale`` takes the waves to the scale of the value's logarithm; more of them below a percentile lower it."""
    if not sure.settled:
        lack = "what came hangs together over a great part of the run: too short to tell"
        return Estimate(value=value, n=n, lack=lack, lengths_needed=sure.lengths_needed)
    waves = tuple(wave * scale for wave in sure.waves)
    return Estimate(value=value, n=n, error=root_mean_square(waves), freedom=float(len(waves)), waves=waves)


def of_runs(estimates: Sequence[Estimate]) -> Estimate:
    """As ``between_runs``; but runs that agree by chance are no surer than each is by itself, where that is known."""
    found = between_runs(estimates)
    own = [estimate.error**2 for estimate in estimates if estimate.error is not None]
    least = math.sqrt(math.fsum(own) / len(own) / len(estimates)) if own else 0.0
    return msgspec.structs.replace(found, error=max(found.error or 0.0, least))


def between_runs(estimates: Sequence[Estimate]) -> Estimate:
    """Of a run that was repeated: the geometric mean of the runs, and how far they are apart."""
    logs = [math.log(estimate.value) for estimate in estimates]
    mean = math.fsum(logs) / len(logs)
    around = [log - mean for log in logs]
    variance = math.fsum(map(mul, around, around)) / (len(logs) - 1)
    counts = [estimate.n for estimate in estimates if estimate.n is not None]
    return Estimate(
        value=math.exp(mean),
        n=sum(counts) if len(counts) == len(estimates) else None,
        error=math.sqrt(variance / len(logs)),
        freedom=float(len(logs) - 1),
    )
