"""The largest load that keeps its promises, from the loads that were tried: a number, an interval, and why not more."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

from withstand.control.floor import Floor
from withstand.control.probe import Look, Probed
from withstand.control.repair import latest, pooled, repaired
from withstand.control.search import Axis, bracket_of
from withstand.control.share import Share
from withstand.metrics.summary import Interval
from withstand.spec import Promise

_ROUNDED = 1.011
"""Loads are told to three digits."""
_LOG_MOST = 700.0
"""What ``exp`` can still take."""
_NEAR_SHARE = 0.5
_NEAR_FACTOR = 1.25
"""What breaks more, or lies farther from where it is looked for, is on another part of the course."""


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """What can be promised."""

    axis: Axis
    promises: tuple[Promise, ...]
    load: float | None
    """The best guess; None = no load kept the promises, or none broke them."""
    interval: Interval
    """It lies within, if no probe was wrong; None = no end was found."""
    first_broken: Promise | None
    """By the lowest load that breaks one; None = a queue that grows, or nothing broke."""
    floor: Floor | None = None
    """Below, tokens cost more than was promised; None where no price is."""
    precision: float = 0.05
    """How narrow the interval was to be."""
    ended: str | None = None
    """Why it was over before all was known, in half a sentence."""
    probes: tuple[Probed, ...] = ()
    """In the order in which they were tried."""
    alone: Look | None = None
    """What is found of one user at a time, where even he does not get what is promised."""

    @property
    def is_known(self) -> bool:
        """Whether anything is: an end of the interval, or that already one user at a time is too many."""
        if self.alone is not None:
            return not self.alone.doubt
        return self.interval.low is not None or self.interval.high is not None

    @property
    def is_answered(self) -> bool:
        """Whether both ends are known, whatever tokens cost there, or that nothing can be promised."""
        if self.alone is not None:
            return not self.alone.doubt
        return self.interval.low is not None and self.interval.high is not None and self.doubted is None

    @property
    def by_limiter(self) -> bool:
        """Whether what stands in the way of more is a limiter, and not the engine."""
        breaking = [one for one in self.probes if one.breaks and one.load == self.interval.high]
        return any(one.look.by_limiter for one in breaking)

    @property
    def doubted(self) -> Probed | None:
        """The lowest load that our own client kept from being known, if the limit may lie about there."""
        low, high = self.interval.low or 0.0, self.interval.high
        about = [one for one in self.probes if one.look.doubt and one.load > low and (high is None or one.load < high)]
        return None if self._is_narrow else min(about, key=lambda one: one.load, default=None)

    @property
    def _is_narrow(self) -> bool:
        low, high = self.interval.low, self.interval.high
        return low is not None and high is not None and high <= low * (1 + self.precision) * _ROUNDED

    @property
    def is_worth_it(self) -> bool | None:
        """Whether there is a load at which tokens are as cheap as was promised; None = that is not known."""
        low, high = self.interval.low, self.interval.high
        if self.floor is None:
            return True
        dearest, cheapest = self.floor.interval.low, self.floor.interval.high
        if low is not None and cheapest is not None and cheapest <= low:
            return True
        return False if high is not None and dearest is not None and dearest >= high else None


def limit_of(probed: Sequence[Probed], axis: Axis, promises: Sequence[Promise], alone: Look | None = None) -> Limit:
    """Monotone: what breaks at a load breaks at every higher one."""
    counted = latest(probed)
    bracket = bracket_of(repaired(counted, promises))
    breaking = min((p for p in counted if p.breaks), key=lambda p: p.load, default=None)
    return Limit(
        axis=axis,
        promises=tuple(promises),
        load=_guess(counted, bracket.low, bracket.high, promises),
        interval=Interval(low=bracket.low, high=bracket.high),
        first_broken=breaking.look.promise if breaking else None,
        probes=tuple(probed),
        alone=alone,
    )


def _guess(
    probed: Sequence[Probed], low: float | None, high: float | None, promises: Sequence[Promise]
) -> float | None:
    """The lowest load at which the course of what broke a promise reaches what may; within the bracket."""
    if low is None or high is None:
        return None
    crossings = [_crossing(probed, i, 1 - promise.share) for i, promise in enumerate(promises)]
    known = [load for load in crossings if load is not None]
    return min(max(min(known), low), high) if known else math.sqrt(low * high)


def _crossing(probed: Sequence[Probed], which: int, allowed: float) -> float | None:
    """First between two loads, then by all that lie about there."""
    about = _between(pooled(probed, which), allowed)
    if about is None:
        return None
    near = [one for one in probed if about / _NEAR_FACTOR <= one.load <= about * _NEAR_FACTOR]
    return _on_a_line(near, which, allowed) or about


def _between(course: Mapping[float, Share], allowed: float) -> float | None:
    """Where the course, which never falls, passes what may break: between its neighbours, by logarithms."""
    points = [(load, _smoothed(share)) for load, share in sorted(course.items())]
    for (below, kept), (above, broke) in pairwise(points):
        if kept <= allowed < broke:
            part = math.log(allowed / kept) / math.log(broke / kept)
            return float(below * (above / below) ** part)
    return None


def _on_a_line(probed: Sequence[Probed], which: int, allowed: float) -> float | None:
    """Where a straight line through the logarithms of loads and shares reaches what may break.

    Near the limit the course of what a queue breaks is nearly one. A point counts by how many broke it, whose inverse
    is the variance of the logarithm.
    """
    told = [(one.load, share) for one in probed if (share := one.look.share(which)) and share.value < _NEAR_SHARE]
    points = [(math.log(load), math.log(_smoothed(share)), share.broken + 0.5) for load, share in told]
    if len(points) < 3:
        return None
    total = math.fsum(w for _, _, w in points)
    x0, y0 = (math.fsum(point[i] * point[2] for point in points) / total for i in (0, 1))
    spread = math.fsum(w * (x - x0) ** 2 for x, _, w in points)
    slope = math.fsum(w * (x - x0) * (y - y0) for x, y, w in points) / spread if spread else 0.0
    return math.exp(min(x0 + (math.log(allowed) - y0) / slope, _LOG_MOST)) if slope > 0 else None


def _smoothed(share: Share) -> float:
    """Half a count is added, lest nothing broken be a certainty."""
    return (share.broken + 0.5) / (share.of + 1)
