"""The points of a stage's scatter charts, and how too many of them are thinned.

A thinned scatter keeps its extremes, and one point between them. Of an answer's gaps only three are taken up.
"""

import math
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Self

import msgspec

from withstand.metrics.latency import NS_PER_MS, Timing, gap_ends
from withstand.metrics.sample import Sample
from withstand.record import Record

_POINTS_MAX = 1500
_STRETCHES = _POINTS_MAX // 3
_SLICE = 1 << 18
_NS_PER_S = 1e9
_NOWHERE = (math.inf, math.inf)


class Scatter(msgspec.Struct, frozen=True):
    """One point a request (or a gap): seconds since the stage's start, ms."""

    at_s: list[float]
    value_ms: list[float]


class Points:
    """Instants and values, side by side."""

    def __init__(self) -> None:
        self.at_ns = array("q")
        self.value = array("d")

    def add(self, at_ns: int | None, value: float | None) -> None:
        """One; what is unknown has no place."""
        if at_ns is not None and value is not None:
            self.at_ns.append(at_ns)
            self.value.append(value)

    def merge(self, other: Self) -> None:
        """More of them."""
        self.at_ns.extend(other.at_ns)
        self.value.extend(other.value)

    def scatter(self, origin_ns: int) -> Scatter:
        """As it is drawn."""
        points = self._thinned() if len(self.at_ns) > _POINTS_MAX else zip(self.at_ns, self.value, strict=True)
        ordered = sorted(points)
        return Scatter(
            at_s=[(at_ns - origin_ns) / _NS_PER_S for at_ns, _ in ordered],
            value_ms=[value / NS_PER_MS for _, value in ordered],
        )

    def _thinned(self) -> set[tuple[float, float]]:
        """Of each of 500 stretches of time, with as many points each, the lowest, the highest and the middle point."""
        stretches = self._stretches()
        edges, middles = list(stretches), list(stretches.values())
        lowest, highest, middle = ([_NOWHERE] * len(edges) for _ in range(3))
        for at_ns, value in zip(self.at_ns, self.value, strict=True):
            i = bisect_right(edges, at_ns) - 1
            if value <= lowest[i][0]:
                lowest[i] = min(lowest[i], (value, at_ns))
            if -value <= highest[i][0]:
                highest[i] = min(highest[i], (-value, at_ns))
            if middles[i] <= at_ns <= middle[i][0]:
                middle[i] = min(middle[i], (at_ns, value))
        points = {(at_ns, value) for value, at_ns in lowest} | {(at_ns, -value) for value, at_ns in highest}
        return points | {point for point in middle if point != _NOWHERE}

    def _stretches(self) -> dict[float, float]:
        """Where each begins → its middle. Points of one instant are not parted."""
        instants = Sample()
        for start in range(0, len(self.at_ns), _SLICE):
            instants.extend(self.at_ns[start : start + _SLICE])
        ranks = [len(instants) * i // _STRETCHES for i in range(_STRETCHES + 1)]
        return {instants.ranked(low): instants.ranked((low + high) // 2) for low, high in pairwise(ranks)}


class Scatters:
    """Those of each metric."""

    def __init__(self) -> None:
        self.by_name = {name: Points() for name in ("ttft", "tpot", "itl", "e2el", "response")}

    def add(self, record: Record, timing: Timing) -> None:
        """One good answer."""
        points = self.by_name
        points["ttft"].add(record.sent_ns, timing.ttft_ns)
        points["tpot"].add(record.sent_ns, timing.tpot_ns)
        points["e2el"].add(record.sent_ns, timing.e2el_ns)
        points["response"].add(record.scheduled_ns, timing.response_ns)
        if timing.gaps_ns:
            self._add_gaps(record, timing.gaps_ns)

    def _add_gaps(self, record: Record, gaps: Sequence[int]) -> None:
        """A gap's instant is its end, found by the event that ends it."""
        ends = gap_ends(record)
        for place in sorted({gaps.index(min(gaps)), gaps.index(max(gaps)), len(gaps) // 2}):
            self.by_name["itl"].add(record.chunk_ns[ends[place]], gaps[place])

    def merge(self, other: Self) -> None:
        """Those of other answers of the stage."""
        for name, points in other.by_name.items():
            self.by_name[name].merge(points)

    def series(self, origin_ns: int) -> dict[str, Scatter]:
        """Those that have points."""
        return {name: points.scatter(origin_ns) for name, points in self.by_name.items() if points.at_ns}
