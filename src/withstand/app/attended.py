"""A stage that may end before its limit: its records are followed while it goes on, and a rule decides."""

from withstand.app.tail import RecordTail
from withstand.control.probe import Look
from withstand.control.stop import Ending, StopRule
from withstand.load.job import Report
from withstand.load.stage import Order
from withstand.spec import Stage, rate_rps_of

_LOOK_NS = 200_000_000
_WATCHED_RPS_MAX = 500.0
"""At a higher rate to read along would take from those that send; the report sees the queue all the same."""


def watches_queue(stage: Stage) -> bool:
    """Whether a growing queue is named while the stage goes on: where the rate is constant, and no rule ends it."""
    rate_rps = rate_rps_of(stage.arrivals)
    if stage.warmup or rate_rps is None or rate_rps > _WATCHED_RPS_MAX:
        return False
    return stage.until is None or not (stage.until.queue or stage.until.known)


class Attended:
    """Tells the stage when it is enough."""

    def __init__(self, rule: StopRule, tail: RecordTail) -> None:
        self._rule = rule
        self._tail = tail
        self._next_ns = 0
        self.ending: Ending | None = None
        """Why it ended; None = it did not, or at its limit."""

    def order(self, report: Report, since_start_ns: int) -> Order | None:
        """What is wanted of the stage now."""
        if self.ending is None and since_start_ns >= self._next_ns:
            self._next_ns = since_start_ns + _LOOK_NS
            self._rule.in_flight(since_start_ns, report.in_flight)
            self._rule.feed(self._tail.read())
            self.ending = self._rule.ending()
        if self.ending is None:
            return None
        return Order.STOP if self.ending.at_once else Order.DRAIN

    def found(self) -> Look | None:
        """When the stage is over: what is known of its load, if that was asked."""
        self._rule.feed(self._tail.read())
        return self._rule.found()
