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
from withstand.control.hunt import SEARCH, next_stage
from withstand.control.limit import Limit
from withstand.control.stop import told
from withstand.errors import UsageError
from withstand.metrics.summary import StageSummary
from withstand.runs import RunState
from withstand.spec import LimitSearch, Plan, Stage

_WORTH_SHARE = 0.25
"""A load that is tried for less of its time tells nothing."""


def searching(plan: Plan) -> Plan:
    """A plan whose stages are those of its search.

    Raises:
        UsageError: it promises nothing.
    """
    if plan.find_limit is None or (first := next_stage(plan.find_limit, [])) is None:
        raise UsageError("Nothing is promised; give --slo ttft:p95:500, say, or a plan with a table find_limit.")
    return msgspec.structs.replace(plan, stages=(first,))


class Hunter:
    """Asked by a run when no stage is left."""

    def __init__(self, wanted: LimitSearch, journal: Journal, screen: Screen) -> None:
        self._wanted = wanted
        self._journal = journal
        self._screen = screen

    def more(self, measured: Sequence[StageSummary]) -> Sequence[Stage]:
        """The next load, after a rest; none when the limit is known, or the budget is used up."""
        manifest = self._journal.manifest
        if any(entry.state is RunState.LEFT_OUT for entry in manifest.stages):
            return []  # the plan's own budget is used up
        tried = tried_in(manifest, measured)
        if tried and tried[-1].look:
            self._screen.message(f"{tried[-1].stage.name}: {told(tried[-1].look)}")
        stage = next_stage(self._wanted, tried)
        if stage is None or (limited := self._within_budget(stage)) is None:
            return []
        if stage.phase == SEARCH:
            clock.sleep_s(self._wanted.rest_s)
        return [limited]

    def _within_budget(self, stage: Stage) -> Stage | None:
        """It may be shortened; None where too little of it would be left."""
        if self._wanted.budget_s is None or stage.duration_s is None:
            return stage
        left_s = self._wanted.budget_s - self._journal.spent_ns() / 1e9
        if left_s < _WORTH_SHARE * stage.duration_s:
            return None
        return msgspec.structs.replace(stage, duration_s=min(stage.duration_s, left_s))


def limit_code(limit: Limit, outcome: Outcome) -> int:
    """0: both ends are known; 1: nothing can be promised; 3: cut, or an end was not found."""
    if limit.alone is not None:
        return MISSED
    known = limit.interval.low is not None and limit.interval.high is not None
    return GOOD if known and outcome.summary.complete else NOT_MEASURED
