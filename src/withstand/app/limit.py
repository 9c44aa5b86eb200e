"""What a run's manifest tells of its search for a limit: the loads that were tried, and the limit read off them."""

from collections.abc import Sequence

from withstand.control.hunt import Tried, found
from withstand.control.limit import Limit
from withstand.control.probe import Look
from withstand.metrics.summary import StageSummary
from withstand.runs import Manifest, RunState
from withstand.spec import Stage


def tried_in(manifest: Manifest, measured: Sequence[StageSummary]) -> list[Tried]:
    """The stages that are over, each with what was found of it."""
    by_name = {summary.name: summary for summary in measured}
    return [
        _tried(entry.stage, entry.look, by_name.get(entry.name))
        for _, entry in manifest.in_order()
        if entry.state is RunState.DONE and not entry.stage.warmup
    ]


def _tried(stage: Stage, look: Look | None, summary: StageSummary | None) -> Tried:
    if summary is None:
        return Tried(stage, look)
    mean_ms = summary.e2el.mean
    return Tried(stage, look, summary.request_throughput, mean_ms / 1e3 if mean_ms is not None else None)


def limit_in(manifest: Manifest) -> Limit | None:
    """None where no limit was looked for."""
    wanted = manifest.plan.find_limit
    return found(wanted, tried_in(manifest, ())) if wanted else None
