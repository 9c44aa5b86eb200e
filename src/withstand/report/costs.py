"""What tokens cost, as a table: one list of columns for the terminal, Markdown and HTML, and the sentences below it."""

from collections.abc import Iterator

from withstand.metrics.cost import busiest_within
from withstand.metrics.summary import StageCost, StageSummary, Summary
from withstand.report.columns import StageColumn, filled
from withstand.report.numbers import UNKNOWN, number, percent, plain


def _price(value: float | None) -> str:
    """Three digits: a millionth of a small price is still a price."""
    return UNKNOWN if value is None else f"{value:.3g}"


def _good(cost: StageCost | None) -> str:
    if cost is None or cost.good_share is None:
        return UNKNOWN
    return f"{percent(cost.good_share)} {'✓' if cost.holds else '✗'}"


_COLUMNS = (
    StageColumn("req/s", lambda s: number(s.request_throughput)),
    StageColumn("an hour", lambda s: UNKNOWN if s.cost is None else plain(s.cost.price_per_hour)),
    StageColumn("per 1M input", lambda s: UNKNOWN if s.cost is None else _price(s.cost.per_million_input)),
    StageColumn("per 1M output", lambda s: UNKNOWN if s.cost is None else _price(s.cost.per_million_output)),
    StageColumn("good requests", lambda s: _good(s.cost)),
)


def columns_of(summary: Summary) -> list[StageColumn]:
    """None where nobody has told a price."""
    return filled(_COLUMNS, summary) if any(stage.cost for stage in summary.stages) else []


def sentences(summary: Summary) -> Iterator[str]:
    """What is quoted, and how it is to be read; nothing where nobody has told a price."""
    costs = [stage.cost for stage in summary.stages if stage.cost]
    if not costs:
        return
    best = busiest_within(summary.stages)
    if best is not None and best.cost is not None:
        yield _within(best, best.cost)
    elif any(cost.holds is not None for cost in costs):
        yield "No stage keeps the limits, so there is no price within them."
    yield "The whole price is laid on the output, and once more on the input: the two are not to be added."


def _within(best: StageSummary, cost: StageCost) -> str:
    return (
        f"Within the limits, at most {number(best.request_throughput)} req/s ({best.name}): "
        f"{_price(cost.per_million_input)} per 1M input tokens, {_price(cost.per_million_output)} per 1M output tokens."
    )
