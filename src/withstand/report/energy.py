"""What a stage took of power, as a table for the terminal, Markdown and HTML, and the sentences below it."""

from collections.abc import Callable, Iterator

from withstand.metrics.energy import Energy
from withstand.metrics.summary import Summary
from withstand.report.columns import StageColumn, filled
from withstand.report.numbers import UNKNOWN, number, plain


def _column(heading: str, cell: Callable[[Energy], str]) -> StageColumn:
    return StageColumn(heading, lambda stage: UNKNOWN if stage.energy is None else cell(stage.energy))


def _gpus(energy: Energy) -> str:
    """``2``, or ``2 of 8`` where others idled."""
    if not energy.gpus_seen:
        return UNKNOWN
    return plain(energy.gpus) if energy.gpus == energy.gpus_seen else f"{energy.gpus} of {energy.gpus_seen}"


_COLUMNS = (
    _column("GPUs", _gpus),
    _column("W", lambda energy: number(energy.mean_watts)),
    _column("J a token", lambda energy: number(energy.per_output_token_j)),
    _column("J a request", lambda energy: number(energy.per_request_j)),
    _column("kWh per 1M output", lambda energy: number(energy.kwh_per_million_output)),
    _column("by", lambda energy: energy.by or UNKNOWN),
    _column("CPU J a token", lambda energy: number(energy.cpu_per_output_token_j)),
)


def columns_of(summary: Summary) -> list[StageColumn]:
    """None where nobody has told of any power."""
    return filled(_COLUMNS, summary) if any(stage.energy for stage in summary.stages) else []


def sentences(summary: Summary) -> Iterator[str]:
    """How it was found, and where looks are missing."""
    told = [(stage.name, stage.energy) for stage in summary.stages if stage.energy]
    if not told:
        return
    yield "Energy from the first send to the last end, failed requests with it, over the output tokens of good answers."
    if any(energy.gpus < energy.gpus_seen for _, energy in told):
        yield "GPUs that neither worked nor held memory are left out."
    if any(energy.by == "power" for _, energy in told):
        yield "By power: integrated from look to look, for no counter of energy was told about the whole stage."
    for name, energy in told:
        yield from (f"{name}: {note}." for note in energy.notes)
