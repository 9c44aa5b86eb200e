"""The search for the largest load that keeps its promises, as part of a run: what ``withstand find-limit`` does.

Each load that is tried is a stage of the run, and what was found of it stands in the manifest: a search that was cut
goes on where it stopped.
"""

from collections.abc import Sequence

import msgspec

from withstand import clock
from withstand.app.journal import Journal
from withstand.app.limit import tried_in
from withstand.app.screen import Outcome, Screen
from withstand.app.verdict import GOOD, MISSED, NOT_MEASURED
from withstand.control.belief import Evidence, believed
from withstand.control.hunt import next_stage
from withstand.control.limit import Limit
from withstand.control.probe import Look, Standing
from withstand.control.stop import told
from withstand.control.tried import ALONE, CHECK, SEARCH, Tried
from withstand.errors import TargetError, UsageError
from withstand.metrics.summary import StageSummary
from withstand.report.numbers import counted
from withstand.runs import RunState
from withstand.spec import LimitSearch, Plan, Stage

_MAYBE_DEAD = "so much failed that the server may have died"
_GONE = "The server answers nobody any more"
_OVER = frozenset({RunState.DONE, RunState.FAILED})
_WORTH_SHARE = 0.25
"""A load that is tried for less of its time tells nothing."""


def searching(plan: Plan) -> Plan:
    """A plan whose stages are those of its search.

    Raises:
        UsageError: it promises nothing, or a price that nobody can work out.
    """
    if plan.find_limit is None:
        raise UsageError("Nothing is promised; give --slo ttft:p95:500, say, or a plan with a table find_limit.")
    wanted = msgspec.structs.replace(plan.find_limit, price_per_hour=plan.asked_price.hour())
    if wanted.cost is not None and wanted.price_per_hour is None:
        raise UsageError("A price is promised, and nobody has told what an hour costs; give --price-per-hour.")
    first = next_stage(wanted, [])
    return msgspec.structs.replace(plan, find_limit=wanted, stages=(first,) if first else ())


class Hunter:
    """Asked by a run when no stage is left."""

    def __init__(self, wanted: LimitSearch, journal: Journal, screen: Screen) -> None:
        self._wanted = wanted
        self._journal = journal
        self._screen = screen
        self._weighed: set[int] = set()

    def more(self, measured: Sequence[StageSummary]) -> Sequence[Stage]:
        """The next load, after a rest; none when the limit is known, or the budget is used up.

        Raises:
            TargetError: the server is gone.
        """
        self._weigh(measured)
        self._hear_check(measured)
        tried = self._tried(measured)
        if tried and tried[-1].look:
            self._screen.message(f"{tried[-1].stage.name}: {_told(tried[-1].stage, tried[-1].look)}")
        stage = self._next(tried)
        if stage is None:
            return []
        if stage.phase == CHECK:
            self._journal.stage_failed(self._last(), _MAYBE_DEAD)
        if stage.phase == SEARCH:
            clock.sleep_s(self._wanted.rest_s)
        return [stage]

    def is_over(self, measured: Sequence[StageSummary]) -> bool:
        """Whether nothing is left to try, or no time to do so."""
        return self._next(self._tried(measured)) is None

    def _tried(self, measured: Sequence[StageSummary]) -> list[Tried]:
        return tried_in(self._journal.manifest, measured)

    def _next(self, tried: Sequence[Tried]) -> Stage | None:
        if any(entry.state is RunState.LEFT_OUT for entry in self._journal.manifest.stages):
            return None  # the plan's own budget is used up
        stage = next_stage(self._wanted, tried)
        return None if stage is None else self._within_budget(stage)

    def _weigh(self, measured: Sequence[StageSummary]) -> None:
        """What was found is held against our own error; of a run that was killed and goes on, all of it once more."""
        summaries = {summary.name: summary for summary in measured}
        for index, entry in enumerate(self._journal.manifest.stages):
            if entry.look and entry.state is RunState.DONE and index not in self._weighed:
                self._weighed.add(index)
                records = self._journal.folder.records(index)
                look = believed(entry.look, Evidence(records, summaries[entry.name], self._wanted.promises))
                self._journal.weighed(index, look)

    def _hear_check(self, measured: Sequence[StageSummary]) -> None:
        """A server that is there has broken its promise; of one that is gone nobody knows what has stopped it.

        Until that is known the load counts as failed: who goes on with the run tries it again.
        """
        tried = self._tried(measured)
        if not tried or tried[-1].stage.phase != CHECK:
            return
        check = self._last()
        if tried[-1].answered:
            self._journal.stage_stands(self._last(before=check))
            return
        self._journal.stage_failed(check, _GONE)
        raise TargetError(f"{_GONE}; look what became of it. `--resume` goes on when it is there again.")

    def _last(self, before: int | None = None) -> int:
        """The stage that was carried out last, or last before another one."""
        order = [index for index, entry in self._journal.manifest.in_order() if entry.state in _OVER]
        return order[-1 if before is None else order.index(before) - 1]

    def _within_budget(self, stage: Stage) -> Stage | None:
        """It may be shortened; None where too little of it would be left."""
        if self._wanted.budget_s is None or stage.duration_s is None:
            return stage
        left_s = self._wanted.budget_s - self._journal.spent_ns() / 1e9
        if left_s < _WORTH_SHARE * stage.duration_s:
            return None
        return msgspec.structs.replace(stage, duration_s=min(stage.duration_s, left_s))


def _told(stage: Stage, look: Look) -> str:
    """One user need not be known to keep what is promised: it is enough that he does not break it."""
    if stage.phase == ALONE and look.standing is Standing.OPEN and not look.doubt:
        return f"one user seems to get what is promised ({counted(look.requests, 'request')})"
    return told(look)


def limit_code(limit: Limit, outcome: Outcome) -> int:
    """0: both ends are known; 1: nothing can be promised; 3: cut, an end was not found, or we were in the way."""
    if limit.alone is not None:
        return NOT_MEASURED if limit.alone.doubt else MISSED
    if not limit.is_answered or not outcome.summary.complete or limit.is_worth_it is None:
        return NOT_MEASURED
    return GOOD if limit.is_worth_it else MISSED
