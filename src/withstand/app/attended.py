"""A stage that may end before its limit: its records are followed while it goes on, and a rule decides."""

from collections.abc import Sequence

from withstand.app.tail import RecordTail
from withstand.control.probe import Look
from withstand.control.stop import Ending, FirstOf, StopRule
from withstand.load.job import Report
from withstand.load.stage import Order
from withstand.spec import Stage, rate_rps_of

_LOOK_NS = 200_000_000
_READ_NS = 1_000_000_000
"""Between two looks at the records, where nothing ends by them: each costs those that send more than what it reads."""
_UNHEARD_NS = 60_000_000_000
_WATCHED_RPS_MAX = 500.0
"""At a higher rate to read along would take from those that send; the report sees the queue all the same."""


def watches_queue(stage: Stage) -> bool:
    """Whether a growing queue is named while the stage goes on: where the rate is constant, and no rule ends it."""
    rate_rps = rate_rps_of(stage.arrivals)
    if stage.warmup or rate_rps is None or rate_rps > _WATCHED_RPS_MAX:
        return False
    return stage.until is None or not (stage.until.queue or stage.until.known)


def attend(stage: Stage, rules: Sequence[StopRule], tail: RecordTail) -> "Attended | None":
    """None where nothing ends the stage but its limit, and nothing is looked for."""
    rule = rules[0] if len(rules) == 1 else FirstOf(rules) if rules else None
    gives_up = _gives_up(stage)
    read_ns = _LOOK_NS if stage.until else _READ_NS
    return Attended(rule, tail, read_ns, gives_up=gives_up) if rule or gives_up else None


def _gives_up(stage: Stage) -> bool:
    """Whether a dead server ends it: a closed loop asks it more slowly, and may have only prompts to end it."""
    return stage.is_closed and stage.duration_s is None


class Attended:
    """Tells the stage when it is enough."""

    def __init__(self, rule: StopRule | None, tail: RecordTail, read_ns: int, *, gives_up: bool = False) -> None:
        self._rule = rule
        self._tail = tail
        self._read_ns = read_ns
        self._gives_up = gives_up
        self._next_ns = self._read_next_ns = 0
        self.ending: Ending | None = None
        """Why it ended; None = it did not, or at its limit."""

    def order(self, report: Report, since_start_ns: int) -> Order | None:
        """What is wanted of the stage now."""
        if self.ending is None and since_start_ns >= self._next_ns:
            self._next_ns = since_start_ns + _LOOK_NS
            self.ending = self._ending(report, since_start_ns)
        if self.ending is None:
            return None
        return Order.STOP if self.ending.at_once else Order.DRAIN

    def _ending(self, report: Report, since_start_ns: int) -> Ending | None:
        if self._gives_up and report.unheard_ns > _UNHEARD_NS:
            return Ending(f"requests failed for {_UNHEARD_NS / 1e9:g} s, and no byte came from the server any more")
        if self._rule is None:
            return None
        self._rule.in_flight(since_start_ns, report.in_flight, report.done)
        if since_start_ns >= self._read_next_ns:
            self._read_next_ns = since_start_ns + self._read_ns
            self._rule.feed(self._tail.read())
        return self._rule.ending()

    def found(self) -> Look | None:
        """When the stage is over: what is known of its load, if that was asked."""
        if self._rule is None:
            return None
        self._rule.feed(self._tail.read())
        return self._rule.found()
