"""A stage's requests one by one, in the order of their sends: what a comparison needs beside the summary.

Some numbers a request, and the gaps between an answer's events, which go to a shelf where they are many. It knows
nothing of estimates.
"""

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Self

from withstand.metrics.agent_courses import AgentCourses
from withstand.metrics.latency import NS_PER_MS, Timing
from withstand.metrics.pieces import Pieces
from withstand.metrics.sample import Keep
from withstand.record import Record

TIMES = ("ttft", "tpot", "e2el", "response")
_UNKNOWN = math.nan


class Courses:
    """Those of one stage, in the order in which they were added; ``order`` is that of the sends."""

    def __init__(self, keep: Keep | None = None) -> None:
        self._at_ns = array("q")
        self.good = array("b")
        self._times_ms = {name: array("d") for name in TIMES}
        self.gap_sums_ms = array("d")
        self.gap_counts = array("q")
        self._gaps = Pieces(keep)
        self.agents = AgentCourses()

    def __len__(self) -> int:
        return len(self._at_ns)

    def add(self, record: Record, timing: Timing | None) -> None:
        """One request, whatever became of it; ``timing`` is None unless its answer was good."""
        self._at_ns.append(_order_ns(record))
        self.good.append(timing is not None)
        values = (timing.ttft_ns, timing.tpot_ns, timing.e2el_ns, timing.response_ns) if timing else (None,) * 4
        for series, value in zip(self._times_ms.values(), values, strict=True):
            series.append(_UNKNOWN if value is None else value / NS_PER_MS)
        gaps = timing.gaps_ns if timing else ()
        self.gap_sums_ms.append(sum(gaps) / NS_PER_MS)
        self.gap_counts.append(len(gaps))
        self._gaps.add(gaps)
        self.agents.add(record, timing, self._at_ns[-1])

    def merge(self, other: Self) -> None:
        """Other requests of the stage."""
        self._at_ns.extend(other._at_ns)
        self.good.extend(other.good)
        for name, series in self._times_ms.items():
            series.extend(other._times_ms[name])
        self.gap_sums_ms.extend(other.gap_sums_ms)
        self.gap_counts.extend(other.gap_counts)
        self._gaps.merge(other._gaps)
        self.agents.merge(other.agents)

    def order(self) -> list[int]:
        """Places of all requests, by when they were sent."""
        return sorted(range(len(self._at_ns)), key=self._at_ns.__getitem__)

    def series(self, order: Sequence[int]) -> Mapping[str, list[float]]:
        """Each time in ms, in an order of places, as far as it is known."""
        return {
            name: [value for place in order if not math.isnan(value := times[place])]
            for name, times in self._times_ms.items()
        }

    def gaps_above(self, limits_ms: Mapping[str, float]) -> dict[str, Sequence[int]]:
        """By the limit's name how many gaps of each request are longer."""
        counts = self._gaps.above(self.gap_counts, [limit_ms * NS_PER_MS for limit_ms in limits_ms.values()])
        return dict(zip(limits_ms, counts, strict=True))


def _order_ns(record: Record) -> int:
    """Where it stands in time; requests that were never sent by when they were due."""
    known = (record.sent_ns, record.started_ns, record.ready_ns, record.scheduled_ns, record.end_ns)
    return next((at for at in known if at is not None), 0)
