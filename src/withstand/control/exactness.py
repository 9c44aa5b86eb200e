"""Are numbers known as exactly as was asked? By the interval that a comparison would give them, in the steady state.

It looks again after a tenth more requests. To stop when an interval is narrow makes it cover a little less than 95 %,
the less the longer the run (Chow and Robbins 1965).
"""

import math
from collections.abc import Iterable, Sequence

from withstand.compare.estimate import Estimate, of_mean, of_quantiles
from withstand.control.kept import took_ns
from withstand.control.order import InOrder
from withstand.control.steady import steady_from
from withstand.metrics.latency import NS_PER_MS, timing_if_good
from withstand.record import Record
from withstand.spec import Precision

_FIRST_LOOK = 50
_NEXT_LOOK = 1.1


class Exactness:
    """Of some numbers of one stage."""

    def __init__(self, wanted: Sequence[Precision]) -> None:
        self._wanted = wanted
        self._order = InOrder()
        self._values: dict[str, list[float]] = {one.metric: [] for one in wanted}
        self._next_look = _FIRST_LOOK

    def feed(self, records: Iterable[Record]) -> None:
        """Requests that are over, in any order."""
        for record in self._order.take(records):
            timing = timing_if_good(record)
            for metric, values in self._values.items():
                time_ns = None if timing is None else took_ns(timing, metric)
                if time_ns is not None:
                    values.append(time_ns / NS_PER_MS)

    def reached(self) -> bool:
        """Whether all are; False also where it is not yet time to look again."""
        count = min(map(len, self._values.values()))
        if count < self._next_look:
            return False
        self._next_look = math.ceil(count * _NEXT_LOOK)
        return all(self._is_known(one) for one in self._wanted)

    def _is_known(self, wanted: Precision) -> bool:
        values = self._values[wanted.metric]
        begin = steady_from(values)
        if begin is None and len(set(values)) > 1:
            return False
        estimate = estimated(values[begin or 0 :], wanted.percentile)
        return estimate.error is not None and _half_width(estimate) <= wanted.within


def estimated(values: Sequence[float], percentile: float | None) -> Estimate:
    """The mean, or a percentile, of values in the order of time."""
    if percentile is None:
        return of_mean(math.fsum(values) / len(values), values)
    share = percentile / 100
    ordered = sorted(values)
    value = ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]
    return of_quantiles({share: value}, values)[share]


def _half_width(estimate: Estimate) -> float:
    """Upwards, as a share of the value; values that are all alike have no interval."""
    ends = estimate.interval
    return ends.high / estimate.value - 1 if ends and ends.high is not None else 0.0
