"""What tokens cost, as a table: one list of columns for the terminal, Markdown and HTML, and the sentences below it."""

from collections.abc import Callable, Iterator

from withstand.metrics.breakeven import in_words
from withstand.metrics.cost import busiest_within
from withstand.metrics.summary import StageCost, StageSummary, Summary
from withstand.report.columns import StageColumn, filled
from withstand.report.numbers import UNKNOWN, between, money, number, percent, plain


def _good(cost: StageCost) -> str:
    return UNKNOWN if cost.good_share is None else f"{percent(cost.good_share)} {'✓' if cost.holds else '✗'}"


def _thousand(price: float | None) -> float | None:
    return None if price is None else 1000 * price


def _column(heading: str, cell: Callable[[StageCost], str]) -> StageColumn:
    return StageColumn(heading, lambda stage: UNKNOWN if stage.cost is None else cell(stage.cost))


_COLUMNS = (
    StageColumn("req/s", lambda s: number(s.request_throughput)),
    _column("GPUs", lambda cost: UNKNOWN if cost.gpus is None else str(cost.gpus)),
    _column("an hour", lambda cost: plain(cost.price_per_hour)),
    _column("per 1M input", lambda cost: money(cost.per_million_input)),
    _column("per 1M output", lambda cost: money(cost.per_million_output)),
    _column("95 %", lambda cost: between(cost.per_million_output_interval)),
    _column("per 1M good", lambda cost: money(cost.per_million_good_output)),
    _column("1,000 requests", lambda cost: money(_thousand(cost.per_request))),
    _column("good requests", _good),
    _column("power per 1M", lambda cost: money(cost.power_per_million_output)),
    _column("against tokens", lambda cost: UNKNOWN if cost.times_cheaper is None else in_words(cost.times_cheaper)),
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
        f"{money(cost.per_million_input)} per 1M input tokens, {money(cost.per_million_output)} per 1M output tokens."
    )
