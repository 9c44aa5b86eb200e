"""Does a queue grow while the load goes on? It looks again after a fifth more of looks at what is on its way."""

import math
from collections.abc import Iterable

from withstand.control.order import InOrder
from withstand.metrics.backlog import queue_growth
from withstand.metrics.latency import timing_if_good
from withstand.metrics.trend import Growth
from withstand.record import Record

_FIRST_LOOK = 30
_NEXT_LOOK = 1.2
_FEWEST_OVER = 10


class Growing:
    """One load."""

    def __init__(self) -> None:
        self._order = InOrder()
        self._points: list[tuple[int, int]] = []
        self._took_ns: list[int] = []
        self._over = 0
        self._next_look = _FIRST_LOOK

    def feed(self, records: Iterable[Record]) -> None:
        """Requests that are over, in any order; their ids count from 0."""
        for record in self._order.take(records):
            self._over += 1
            timing = timing_if_good(record)
            if timing is not None and timing.e2el_ns is not None:
                self._took_ns.append(timing.e2el_ns)

    def in_flight(self, at_ns: int, requests: int) -> None:
        """How many are on their way at an instant."""
        self._points.append((at_ns, requests))

    def growth(self) -> Growth | None:
        """None = none is sure, or it is not yet time for another look."""
        if len(self._points) < self._next_look or len(self._took_ns) < _FEWEST_OVER:
            return None
        self._next_look = math.ceil(len(self._points) * _NEXT_LOOK)
        return queue_growth(self._points, self._over + self._points[-1][1], self._took_ns)
