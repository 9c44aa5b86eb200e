"""What each layer of a stack costs, as a table for the terminal, Markdown and HTML, and the sentence below it."""

from collections.abc import Iterator

from withstand.metrics.layers import ELSE
from withstand.metrics.summary import StageSummary, Summary
from withstand.report.columns import StageColumn
from withstand.report.numbers import UNKNOWN, brief_percent, number

_NAMES = (
    *("edge", "agent", "tools", "cold start", "gateway queue", "gateway", "engine queue", "prefill", "decode", ELSE),
)


def _cell(stage: StageSummary, name: str) -> str:
    """``53.62``, and below it ``7 %``."""
    part = stage.layers.part(name) if stage.layers else None
    return UNKNOWN if part is None else f"{number(part.mean_ms)}\n{brief_percent(part.share)}"


def _whole(stage: StageSummary) -> str:
    return UNKNOWN if stage.layers is None else number(stage.layers.e2el_mean_ms)


def _column(name: str) -> StageColumn:
    return StageColumn(name, lambda stage: _cell(stage, name))


def columns_of(summary: Summary) -> list[StageColumn]:
    """Those that somebody has told of; none where nobody has told anything."""
    told = [stage.layers for stage in summary.stages if stage.layers]
    if not told:
        return []
    return [
        StageColumn("mean E2EL ms", _whole),
        *(_column(name) for name in _NAMES if any(layers.part(name) for layers in told)),
    ]


def sentences(summary: Summary) -> Iterator[str]:
    """Whose word each is."""
    if columns_of(summary):
        yield (
            "What each layer costs: its part of the mean E2EL. Edge, agent and gateway by Server-Timing (the gateway "
            "until it has asked an engine), the engine by its metrics or its answers' ends, "
            f"{_decode(summary)}; else is what nobody told: the network, HTTP, parts that do not fit."
        )


def _decode(summary: Summary) -> str:
    """An agent's model decodes several times, and mostly unheard."""
    if any(stage.agent and stage.agent.steps.n for stage in summary.stages):
        return "decode as the agent tells of its model's calls, most of which nobody hears"
    return "decode as heard"
