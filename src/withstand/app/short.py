"""Why a stage was shorter than its plan. Pure."""

from withstand.app.estimate import lasting
from withstand.app.report import why_no_numbers
from withstand.load.stage import StageResult
from withstand.runs import StageEntry
from withstand.spec import Inf, Stage


def why_cut_short(planned: Stage, entry: StageEntry, result: StageResult) -> str | None:
    """In half a sentence; None where it is as long as planned, or ended otherwise: by a rule, an error, the user."""
    if entry.ended_by or result.error or result.interrupted:
        return None
    return _by_budget(planned, entry.stage, result) or _by_dataset(entry.stage, result)


def told_of_end(entry: StageEntry, result: StageResult) -> str | None:
    """One sentence, where there is something to tell. What was found of a load that was tried, its search tells."""
    if entry.had_no_arrival:
        return f"Stage {entry.name}: {why_no_numbers(entry)}."
    if entry.ended_by and not entry.look:
        return f"Stage {entry.name} ended after {lasting(_lasted_s(result))}: {entry.ended_by}."
    return f"Stage {entry.name} was cut short: {entry.cut_short}." if entry.cut_short else None


def _by_budget(planned: Stage, stage: Stage, result: StageResult) -> str | None:
    """A stage that only its number of requests should have ended."""
    finished = sum(health.finished for health in result.health)
    if stage.duration_s == planned.duration_s or finished >= result.planned:
        return None
    return f"the budget ended it after {finished:,} of {result.planned:,} requests"


def _by_dataset(stage: Stage, result: StageResult) -> str | None:
    """A closed loop that only its duration should have ended has run out of prompts."""
    if stage.duration_s is None or stage.num_prompts is not None or not isinstance(stage.arrivals, Inf):
        return None
    if _lasted_s(result) >= stage.duration_s:
        return None
    return (
        f"it ended after {_lasted_s(result):.1f} of {stage.duration_s:g} s, for the dataset has no more prompts; "
        "--set workload.repeat=true begins it again"
    )


def _lasted_s(result: StageResult) -> float:
    return (result.ended_ns - result.started_ns) / 1e9
