"""The page's tables: one row a stage, and the percentiles with their intervals. They are there without JavaScript."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby

from withstand.metrics.summary import PERCENTILES, Distribution, Interval, StageSummary, Summary
from withstand.report import costs as cost_table
from withstand.report import economy as bill
from withstand.report import energy as energy_table
from withstand.report import layers as layer_table
from withstand.report import tokens as token_table
from withstand.report.client import run_line
from withstand.report.columns import Column, StageColumn, captions, columns_of_stages, name_of
from withstand.report.ending import ending_lines
from withstand.report.markup import Markup, joined, tag, unbroken
from withstand.report.numbers import count, number

Row = Callable[[StageSummary], Markup]

_METRICS = {
    "ttft": "Time to first token (TTFT)",
    "tpot": "Time per output token (TPOT)",
    "itl": "Inter-token latency (ITL), between events",
    "itl_per_token": "Inter-token latency, per token",
    "itl_request_mean": "Inter-token latency, mean of a request",
    "e2el": "End-to-end latency (E2EL)",
    "response": "Response time, from schedule",
    "ttft_scheduled": "TTFT from schedule",
}


def stages(summary: Summary) -> Markup:
    """The overview."""
    columns = [column for part in columns_of_stages(summary) for column in part]
    head = tag("thead", tag("tr", tag("th", "Stage", scope="col"), *map(_heading, [c.stacked for c in columns])))
    bodies = _bodies(summary, partial(_overview_row, columns), len(columns) + 1)
    table = tag("table", tag("caption", " · ".join(captions(summary))), head, *bodies)
    lines = [*filter(None, [run_line(summary)]), *ending_lines(summary)]
    said = [tag("p", unbroken(f"{line[0].upper()}{line[1:]}."), class_="lead") for line in lines]
    return joined(scrollable(table, "Stages") if summary.stages else "", *said)


def _heading(stacked: tuple[str, str, str]) -> Markup:
    first, second, unit = stacked
    shown = "doubts" if first == "?" else f"{first} {second}".strip().replace(" /", "/")
    return tag("th", shown, tag("span", unit, class_="unit") if unit else Markup(), scope="col")


def _overview_row(columns: Sequence[Column], stage: StageSummary) -> Markup:
    return tag("tr", tag("th", name_of(stage), scope="row"), *(_cell(column.cell(stage)) for column in columns))


def _cell(text: str) -> Markup:
    return tag("td", text.removesuffix("!"), tag("span", " blocking", class_="bad") if text.endswith("!") else Markup())


def _bodies(summary: Summary, row: Row, width: int) -> list[Markup]:
    return [
        tag("tbody", _phase_row(phase, width), *(row(stage) for stage in group))
        for phase, group in groupby(summary.stages, key=lambda stage: stage.phase)
    ]


def _phase_row(phase: str | None, width: int) -> Markup:
    if not phase:
        return Markup()
    return tag("tr", tag("th", phase, scope="rowgroup", colspan=str(width)), class_="phase")


def percentiles(summary: Summary) -> Markup:
    """A table a metric; the first is open, a metric that no stage has is left out."""
    known = [name for name in _METRICS if any(getattr(stage, name).n != 0 for stage in summary.stages)]
    return joined(*(_folded(name, summary, opened=name == known[0]) for name in known))


def _folded(name: str, summary: Summary, *, opened: bool) -> Markup:
    headings = ["n", "mean", *(f"p{p}" for p in PERCENTILES), "max"]
    head = tag("thead", tag("tr", tag("th", "Stage", scope="col"), *(tag("th", h, scope="col") for h in headings)))
    rows = _bodies(summary, lambda stage: _distribution_row(name_of(stage), getattr(stage, name)), len(headings) + 1)
    table = tag("table", head, *rows, class_="intervals")
    title = tag("summary", _METRICS[name], tag("span", " ms", class_="unit"))
    return tag("details", title, scrollable(table, _METRICS[name]), open=opened)


def _distribution_row(stage: str, distribution: Distribution) -> Markup:
    values = [("mean", distribution.mean), *((f"p{p}", distribution.percentiles.get(f"p{p}")) for p in PERCENTILES)]
    cells = [_with_interval(value, distribution.intervals.get(key)) for key, value in values]
    n, most = tag("td", count(distribution.n)), tag("td", number(distribution.max))
    return tag("tr", tag("th", stage, scope="row"), n, *cells, most)


def _with_interval(value: float | None, interval: Interval | None) -> Markup:
    if interval is None or value is None:
        return tag("td", number(value))
    unknown = interval.low is None and interval.high is None
    ends = "?" if unknown else f"{_end(interval.low)} to {_end(interval.high)}"
    return tag("td", number(value), tag("small", ends))


def _end(value: float | None) -> str:
    """``?`` where so few values cannot bound it."""
    return "?" if value is None else number(value)


def tokens(summary: Summary) -> Markup:
    """The ledger of every stage that has one; nothing at all where there is none."""
    caption = tag("caption", token_table.CAPTION)
    return _section("Tokens", caption, token_table.columns_of(summary), summary)


def layers(summary: Summary) -> Markup:
    """What each layer of a stack costs; nothing at all where none has told anything."""
    caption = tag("caption", " ".join(layer_table.sentences(summary)))
    return _section("Time by layer", caption, layer_table.columns_of(summary), summary)


def costs(summary: Summary) -> Markup:
    """What a million tokens cost; nothing at all where nobody has told a price."""
    caption = tag("caption", " ".join(cost_table.sentences(summary)))
    said = [tag("p", unbroken(sentence), class_="lead") for sentence in bill.sentences(summary)]
    return _section("Costs", caption, cost_table.columns_of(summary), summary, said)


def energy(summary: Summary) -> Markup:
    """What a token took; nothing at all where nobody has told of any power."""
    caption = tag("caption", " ".join(energy_table.sentences(summary)))
    return _section("Energy", caption, energy_table.columns_of(summary), summary)


def _section(
    title: str, caption: Markup, columns: Sequence[StageColumn], summary: Summary, below: Sequence[Markup] = ()
) -> Markup:
    if not columns:
        return Markup()
    headings = [tag("th", column.heading, scope="col") for column in columns]
    head = tag("thead", tag("tr", tag("th", "Stage", scope="col"), *headings))

    def row(stage: StageSummary) -> Markup:
        return tag("tr", tag("th", stage.name, scope="row"), *(_two_lines(column.cell(stage)) for column in columns))

    table = tag("table", caption, head, *_bodies(summary, row, len(headings) + 1))
    body = tag("div", scrollable(table, title), *below, class_="body")
    return tag("section", tag("h2", title), body, id=title.lower())


def _two_lines(text: str) -> Markup:
    value, *beside = text.split("\n")
    return tag("td", value, *(tag("small", line) for line in beside))


def scrollable(table: Markup, name: str) -> Markup:
    """Where the window is narrower than the table, the table scrolls, also by keyboard; the page does not."""
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=name)
