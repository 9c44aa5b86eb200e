"""What a run tells of its search for a limit: the loads that were tried, and the limit read off them."""

from collections.abc import Mapping, Sequence

from withstand.control.hunt import Tried, found
from withstand.control.limit import Limit
from withstand.control.probe import Told
from withstand.metrics.summary import StageSummary
from withstand.runs import Manifest, RunState, StageEntry

Times = Mapping[str, tuple[Told | None, ...]]
"""Of stages by their names: the times that were promised."""


def tried_in(manifest: Manifest, measured: Sequence[StageSummary], times: Times | None = None) -> list[Tried]:
    """The stages that are over, each with what was found of it."""
    by_name = {summary.name: summary for summary in measured}
    return [
        _tried(entry, by_name.get(entry.name), (times or {}).get(entry.name, ()))
        for _, entry in manifest.in_order()
        if entry.state is RunState.DONE and not entry.stage.warmup
    ]


def _tried(entry: StageEntry, summary: StageSummary | None, times: tuple[Told | None, ...]) -> Tried:
    if summary is None:
        return Tried(entry.stage, entry.look, times=times)
    mean_ms = summary.e2el.mean
    e2el_s = mean_ms / 1e3 if mean_ms is not None else None
    return Tried(entry.stage, entry.look, summary.request_throughput, e2el_s, times)


def limit_in(manifest: Manifest, measured: Sequence[StageSummary], times: Times) -> Limit | None:
    """None where no limit was looked for."""
    wanted = manifest.plan.find_limit
    return found(wanted, tried_in(manifest, measured, times)) if wanted else None
