"""What tokens cost, as a table: plain text and Markdown."""

from collections.abc import Iterator

from withstand.metrics.cost import Costs, StageCost
from withstand.report.markdown import escaped
from withstand.report.numbers import UNKNOWN, number, percent, plain
from withstand.report.terminal import shown

_HEADS = ("stage", "req/s", "per 1M input", "per 1M output", "good requests")


def costs_text(costs: Costs) -> str:
    """For a terminal, with a newline at its end."""
    rows = [_HEADS, *(tuple(map(shown, _row(stage))) for stage in costs.stages)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADS))]
    lines = ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
    return "\n".join([f"What tokens cost at {plain(costs.price_per_hour)} an hour", *lines, *_within(costs), ""])


def _aligned(row: tuple[str, ...], widths: list[int]) -> Iterator[str]:
    for place, (text, width) in enumerate(zip(row, widths, strict=True)):
        yield text.rjust(width) if place else text.ljust(width)


def costs_markdown(costs: Costs) -> str:
    """For pull requests, with a newline at its end."""
    lines = [f"| {' | '.join(_HEADS)} |", "| --- |" + " ---: |" * (len(_HEADS) - 1)]
    lines += [f"| {' | '.join(map(escaped, _row(stage)))} |" for stage in costs.stages]
    title = f"### What tokens cost at {plain(costs.price_per_hour)} an hour"
    return "\n\n".join([title, "\n".join(lines), *_within(costs)]) + "\n"


def _row(stage: StageCost) -> tuple[str, ...]:
    kept = "" if stage.good_share is None else f"{percent(stage.good_share)} {'✓' if stage.holds else '✗'}"
    return (
        stage.stage,
        number(stage.request_throughput),
        _price(stage.per_million_input),
        _price(stage.per_million_output),
        kept or UNKNOWN,
    )


def _price(value: float | None) -> str:
    """Three digits: a millionth of a small price is still a price."""
    return UNKNOWN if value is None else f"{value:.3g}"


def _within(costs: Costs) -> Iterator[str]:
    """The sentence that is quoted."""
    yield "The whole price is laid on the output, and once more on the input: the two are not to be added."
    if all(stage.holds is None for stage in costs.stages):
        return
    if costs.within_slo is None:
        yield "No stage keeps the limits, so there is no price within them."
        return
    best = costs.stages[costs.within_slo]
    yield (
        f"Within the limits, at most {number(best.request_throughput)} req/s ({shown(best.stage)}): "
        f"{_price(best.per_million_input)} per 1M input tokens, {_price(best.per_million_output)} per 1M output tokens."
    )
