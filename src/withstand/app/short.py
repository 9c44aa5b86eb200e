"""Why a stage was shorter than its plan. Pure."""

from withstand.app.estimate import lasting
from withstand.load.stage import StageResult
from withstand.runs import StageEntry
from withstand.spec import Inf, Stage


def why_short(planned: Stage, entry: StageEntry, result: StageResult) -> str | None:
    """None where it is as long as planned. What was found of a load that was tried, its search tells."""
    if entry.ended_by:
        return None if entry.look else _ended_by_rule(entry.ended_by, entry.name, result)
    return _cut_short(planned, entry.stage, result) or _ended_early(entry.stage, result)


def _ended_by_rule(why: str, name: str, result: StageResult) -> str:
    return f"Stage {name} ended after {lasting((result.ended_ns - result.started_ns) / 1e9)}: {why}."


def _cut_short(planned: Stage, stage: Stage, result: StageResult) -> str | None:
    """A stage that only its number of requests should have ended was ended by the budget."""
    finished = sum(health.finished for health in result.health)
    if stage.duration_s == planned.duration_s or finished >= result.planned or result.interrupted:
        return None
    return f"Stage {stage.name} was ended by the budget after {finished:,} of {result.planned:,} requests."


def _ended_early(stage: Stage, result: StageResult) -> str | None:
    """A closed loop that only its duration should have ended has run out of prompts."""
    if stage.duration_s is None or stage.num_prompts is not None or not isinstance(stage.arrivals, Inf):
        return None
    lasted_s = (result.ended_ns - result.started_ns) / 1e9
    if result.interrupted or lasted_s >= stage.duration_s:
        return None
    return (
        f"Stage {stage.name} ended after {lasted_s:.1f} of {stage.duration_s:g} s: the dataset has no more prompts. "
        "--set workload.repeat=true begins it again."
    )
