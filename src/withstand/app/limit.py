"""What a run tells of its search for a limit: the loads that were tried, and the limit read off them."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from withstand.app.estimate import lasting
from withstand.control.hunt import found, next_stage
from withstand.control.limit import Limit
from withstand.control.probe import Look, Standing, Told
from withstand.control.tried import Tried, tried_of
from withstand.metrics.summary import StageSummary
from withstand.runs import Manifest, RunState, StageEntry

Times = Mapping[str, tuple[Told | None, ...]]
"""Of stages by their names: the times that were promised."""
_OVER = frozenset({RunState.DONE, RunState.FAILED})


def tried_in(manifest: Manifest, measured: Sequence[StageSummary], times: Times | None = None) -> list[Tried]:
    """The stages that are over, each with what was found of it."""
    by_name = {summary.name: summary for summary in measured}
    return [
        tried_of(entry.stage, _look(entry), by_name.get(entry.name), (times or {}).get(entry.name, ()))
        for _, entry in manifest.in_order()
        if entry.state in _OVER and not entry.stage.warmup
    ]


def _look(entry: StageEntry) -> Look | None:
    """A stage that could not be carried to its end tells nothing of its load."""
    if entry.state is RunState.DONE:
        return entry.look
    seen = entry.look or Look(standing=Standing.OPEN)
    return replace(seen, standing=Standing.OPEN, promise=None, doubt=(entry.error or "it failed").rstrip("."))


def limit_in(manifest: Manifest, measured: Sequence[StageSummary] = (), times: Times | None = None) -> Limit | None:
    """None where no limit was looked for."""
    wanted = manifest.plan.find_limit
    if wanted is None:
        return None
    tried = tried_in(manifest, measured, times)
    limit = found(wanted, tried)
    if manifest.state is not RunState.DONE or not measured or next_stage(wanted, tried) is None:
        return limit
    budget_s = wanted.budget_s or manifest.plan.budget_s
    return replace(
        limit, ended=f"the budget of {lasting(budget_s)} leaves no time for another load" if budget_s else None
    )
