"""Does a queue grow while the load goes on? It looks again after a fifth more of looks at what is on its way."""

import math
from collections.abc import Iterable

from withstand.control.order import InOrder
from withstand.metrics.backlog import filling_ns, queue_growth
from withstand.metrics.latency import last_token_ns
from withstand.metrics.trend import Growth
from withstand.record import Record, Status

_FIRST_LOOK = 30
_NEXT_LOOK = 1.2
_FEWEST_OVER = 10
_FILLINGS = 4
"""After so many times that an empty server fills, half of what is over was asked of a full one: what it takes is known,
and no further answer is looked at."""


class Growing:
    """One load."""

    def __init__(self) -> None:
        self._order = InOrder()
        self._points: list[tuple[int, int]] = []
        self._asked = 0
        self._took_ns: list[int] = []
        self._next_look = _FIRST_LOOK
        self._is_full = False

    def feed(self, records: Iterable[Record]) -> None:
        """Requests that are over, in any order; their ids count from 0. Not read where nothing more is to be known."""
        if self._is_full:
            return
        for record in self._order.take(records):
            last_ns = last_token_ns(record)
            if record.status is Status.OK and record.sent_ns is not None and last_ns is not None:
                self._took_ns.append(last_ns - record.sent_ns)

    def in_flight(self, at_ns: int, requests: int, over: int) -> None:
        """How many are on their way at an instant, and how many are over by then."""
        self._points.append((at_ns, requests))
        self._asked = over + requests

    def growth(self) -> Growth | None:
        """None = none is sure, or it is not yet time for another look."""
        if len(self._points) < self._next_look or len(self._took_ns) < _FEWEST_OVER:
            return None
        self._next_look = math.ceil(len(self._points) * _NEXT_LOOK)
        self._is_full = self._points[-1][0] - self._points[0][0] > _FILLINGS * filling_ns(self._took_ns)
        return queue_growth(self._points, self._asked, self._took_ns)
