"""The comparison page's tables: all verdicts at a glance, and each metric with Fastest, Faster by and verdict."""

from collections.abc import Sequence

from withstand.compare.shape import Comparison, Difference, Group, Row, Verdict
from withstand.report import comparison_words as words
from withstand.report.comparison_words import HEADLINE, Listed, Notes
from withstand.report.html_tables import scrollable
from withstand.report.markup import Markup, joined, tag
from withstand.report.numbers import UNKNOWN, signed_percent

_GLANCE_MAX = 600
_VALUES_MAX = 400
"""Cells of a table: with very many sets of conditions the rest is in the CSV and the JSON."""

_CLASSES = {
    Verdict.BETTER: "better",
    Verdict.WORSE: "worse",
    Verdict.NO_DIFFERENCE: "same",
    Verdict.UNKNOWN: "unknown",
}
_SIGNS = {Verdict.BETTER: "\N{BLACK UP-POINTING TRIANGLE}", Verdict.WORSE: "\N{BLACK DOWN-POINTING TRIANGLE}"}
_SIGNS |= {Verdict.NO_DIFFERENCE: "=", Verdict.UNKNOWN: "?"}


def glance(comparison: Comparison, metrics: Sequence[Listed]) -> Markup:
    """A row for each of the metrics that people look for first, a column for each set of conditions."""
    shown = [one for one in metrics if one.metric in HEADLINE] or list(metrics)
    shown = shown[: max(1, _GLANCE_MAX // max(1, len(comparison.groups) * (len(comparison.sides) - 1)))]
    if not shown or len(comparison.sides) < 2:
        return tag("p", "There is nothing to compare.", class_="lead")
    headings = [tag("th", group.label, scope="col") for group in comparison.groups]
    head = tag("thead", tag("tr", tag("th", "Metric", scope="col"), *headings))
    bodies = [_glance_body(comparison, shown, side) for side in range(1, len(comparison.sides))]
    return scrollable(tag("table", _key(), head, *bodies, class_="glance"), "Verdicts at a glance")


def _key() -> Markup:
    said = {
        Verdict.BETTER: "better",
        Verdict.WORSE: "worse",
        Verdict.NO_DIFFERENCE: "no difference that this data can show",
        Verdict.UNKNOWN: "cannot be concluded",
    }
    parts = [tag("span", tag("b", _SIGNS[which]), f" {word}", class_=_CLASSES[which]) for which, word in said.items()]
    return tag("caption", *(joined(part, "  ") for part in parts))


def _glance_body(comparison: Comparison, shown: Sequence[Listed], side: int) -> Markup:
    against = f"{comparison.sides[side].label} against {comparison.sides[0].label}"
    width = str(len(comparison.groups) + 1)
    head = tag("tr", tag("th", against, scope="rowgroup", colspan=width), class_="phase")
    return tag("tbody", head, *(_glance_row(comparison, metric, side) for metric in shown))


def _glance_row(comparison: Comparison, metric: Listed, side: int) -> Markup:
    rows = {id(group): row for group, row in metric.pairs}
    cells = [_glance_cell(rows.get(id(group)), side) for group in comparison.groups]
    return tag("tr", tag("th", metric.first.title, scope="row"), *cells)


def _glance_cell(row: Row | None, side: int) -> Markup:
    difference = row.differences[side] if row else None
    if row is None or difference is None or difference.percent is None:
        return tag("td", UNKNOWN)
    sign = tag("b", _SIGNS[difference.verdict], aria_hidden="true")
    said = tag("span", f" {words.verdict(row, difference)}", class_="unseen")
    return tag("td", sign, " ", signed_percent(difference.percent), said, class_=_CLASSES[difference.verdict])


def metric(comparison: Comparison, shown: Listed, *, opened: bool) -> Markup:
    """One metric: a chart, a table, and the notes that the table refers to."""
    notes = Notes()
    first = shown.first
    better = {True: ", lower is better", False: ", higher is better", None: ""}[first.lower_is_better]
    title = tag("summary", first.title, tag("span", f" {words.unit(first)}{better}", class_="unit"))
    most = max(1, _VALUES_MAX // len(comparison.sides))
    rows = [_row(comparison, pair, shown.decimals, notes) for pair in shown.pairs[:most]]
    more = len(shown.pairs) - len(rows)
    table = tag(
        "table",
        _head(comparison, words.unit(first)),
        tag("tbody", *rows),
        class_="sides many" if len(comparison.sides) > 2 else "sides",
    )
    caption = tag("figcaption", f"{first.title} at each load", class_="unseen")
    plot = tag("div", class_="plot", data_chart="bars", data_metric=shown.metric)
    return tag(
        "details",
        title,
        tag("figure", caption, plot),
        scrollable(table, first.title),
        tag("p", f"{more:,} more rows are in the CSV and the JSON.", class_="lead") if more > 0 else Markup(),
        _noted(notes),
        open=opened,
        class_="metric",
    )


def _head(comparison: Comparison, unit: str) -> Markup:
    baseline, *others = [side.label for side in comparison.sides]
    sides = [_side_heading(place, side.label, unit) for place, side in enumerate(comparison.sides)]
    against = [
        tag("th", f"{other} against {baseline}", tag("span", "95 %", class_="unit"), scope="col") for other in others
    ]
    fastest = [
        tag("th", "Fastest", scope="col", class_="who"),
        tag("th", "Faster by", tag("span", "%", class_="unit"), scope="col"),
    ]
    return tag("thead", tag("tr", tag("th", "Load", scope="col"), *sides, *fastest, *against))


def _side_heading(place: int, label: str, unit: str) -> Markup:
    mark = tag("span", f"{unit}{', baseline' if place == 0 else ''}", class_="unit")
    return tag("th", swatch(place), label, mark, scope="col")


def swatch(place: int) -> Markup:
    """The colour of a side, which is told in words beside it."""
    return tag("i", class_="swatch", style=f"--c: var(--side-{place % 8})", aria_hidden="true")


def _row(comparison: Comparison, pair: tuple[Group, Row], decimals: int, notes: Notes) -> Markup:
    group, row = pair
    work = words.work(group)
    load = tag(
        "th", group.label, _marks(notes, words.reservations(row)), tag("small", work) if work else Markup(), scope="row"
    )
    values = [_value(row, side, decimals, notes) for side in range(len(row.cells))]
    winner = joined(swatch(row.fastest), words.fastest(comparison, row)) if row.fastest is not None else UNKNOWN
    fastest = [tag("td", winner, class_="who"), tag("td", words.faster_by(row))]
    against = [_against(row, row.differences[side]) for side in range(1, len(row.cells))]
    return tag("tr", load, *values, *fastest, *against)


def _value(row: Row, side: int, decimals: int, notes: Notes) -> Markup:
    cell = row.cells[side]
    ends = words.interval(row, cell.interval, decimals)
    marks = _marks(notes, words.cell_doubts(row, side))
    shown = words.value(row, cell.value, decimals)
    return tag(
        "td", shown, marks, tag("small", ends) if ends else Markup(), class_="best" if row.fastest == side else ""
    )


def _against(row: Row, difference: Difference | None) -> Markup:
    if difference is None:
        return tag("td", UNKNOWN)
    ends = words.difference_interval(difference) or "no interval"
    chance = f", p {difference.chance:.2g}" if difference.chance is not None else ""
    verdict = tag("b", words.verdict(row, difference))
    size = tag("small", tag("span", f"{signed_percent(difference.percent)}{chance}"), " ", tag("span", f"({ends})"))
    return tag("td", verdict, size, class_=_CLASSES[difference.verdict])


def _marks(notes: Notes, sentences: Sequence[str]) -> Markup:
    numbers = notes.refer(sentences)
    return tag("sup", ", ".join(map(str, numbers))) if numbers else Markup()


def _noted(notes: Notes) -> Markup:
    items = [tag("li", sentence) for _, sentence in notes.listed()]
    return tag("ol", *items, class_="notes") if items else Markup()
