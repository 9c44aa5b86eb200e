"""The comparison page's tables: all verdicts at a glance, and each metric with Fastest, Faster by and verdict.

A small number is that of a doubt at the head of the page, and leads there.
"""

from collections.abc import Iterable, Sequence

import msgspec

from withstand.compare.shape import Comparison, Difference, Group, Row, Verdict
from withstand.metrics.doubts import Doubt
from withstand.report import comparison_words as words
from withstand.report.comparison_words import HEADLINE, Listed, Numbered
from withstand.report.html_tables import scrollable
from withstand.report.markup import Markup, joined, tag, unbroken
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


class Context(msgspec.Struct, frozen=True):
    """What all tables of a page refer to."""

    comparison: Comparison
    numbered: Numbered
    common: frozenset[str]
    """What holds for all rows, and is said once."""


def context_of(comparison: Comparison) -> Context:
    """Gathered once for all tables."""
    said = frozenset(said for said in (words.common_lack(comparison), words.common_cure(comparison)) if said)
    return Context(comparison, Numbered(comparison), said)


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


def metric(context: Context, shown: Listed, *, opened: bool) -> Markup:
    """One metric: a chart and a table."""
    first, sides = shown.first, context.comparison.sides
    better = f", {words.direction(first)}" if words.direction(first) else ""
    title = tag("summary", first.title, tag("span", f" {words.unit(first)}{better}", class_="unit"))
    rows = [_row(context, pair, shown.decimals) for pair in shown.pairs[: max(1, _VALUES_MAX // len(sides))]]
    more = len(shown.pairs) - len(rows)
    table = tag(
        "table",
        _head(context.comparison, shown),
        tag("tbody", *rows),
        class_="sides many" if len(sides) > 2 else "sides",
    )
    caption = tag("figcaption", f"{first.title} at each load", class_="unseen")
    plot = tag("div", class_="plot", data_chart="bars", data_metric=shown.metric)
    return tag(
        "details",
        title,
        tag("figure", caption, plot),
        scrollable(table, first.title),
        tag("p", f"{more:,} more rows are in the CSV and the JSON.", class_="lead") if more > 0 else Markup(),
        open=opened,
        class_="metric",
    )


def _head(comparison: Comparison, shown: Listed) -> Markup:
    baseline, *others = [side.label for side in comparison.sides]
    unit = words.unit(shown.first)
    sides = [_side_heading(place, side.label, unit) for place, side in enumerate(comparison.sides)]
    bounded = any(difference and difference.interval for _, row in shown.pairs for difference in row.differences)
    below = "with 95 % interval" if bounded else "without interval"
    against = [
        tag("th", f"{other} against {baseline}", tag("span", below, class_="unit"), scope="col", class_="against")
        for other in others
    ]
    fastest = [tag("th", "Fastest", scope="col", class_="who"), tag("th", "Faster by", scope="col")]
    return tag("thead", tag("tr", tag("th", "Load", scope="col"), *sides, *fastest, *against))


def _side_heading(place: int, label: str, unit: str) -> Markup:
    mark = tag("span", f"{unit}{', baseline' if place == 0 else ''}", class_="unit")
    return tag("th", swatch(place), label, mark, scope="col")


def swatch(place: int) -> Markup:
    """The colour of a side, which is told in words beside it."""
    return tag("i", class_="swatch", style=f"--c: var(--side-{place % 8})", aria_hidden="true")


def _row(context: Context, pair: tuple[Group, Row], decimals: int) -> Markup:
    group, row = pair
    work = words.work(group)
    load = tag("th", group.label, tag("small", work) if work else Markup(), scope="row")
    values = [_value(context, row, side, decimals) for side in range(len(row.cells))]
    name = words.fastest(context.comparison, row)
    winner = joined(swatch(row.fastest), name) if row.fastest is not None else UNKNOWN
    fastest = [tag("td", winner, class_="who"), tag("td", words.faster_by(row))]
    against = [_against(context, row, row.differences[side]) for side in range(1, len(row.cells))]
    return tag("tr", load, *values, *fastest, *against)


def _value(context: Context, row: Row, side: int, decimals: int) -> Markup:
    cell = row.cells[side]
    ends = words.interval(row, cell.interval, decimals)
    shown = words.value(row, cell.value, decimals)
    return tag(
        "td",
        shown,
        _marks(context, cell.doubts),
        tag("small", ends) if ends else Markup(),
        class_="best" if row.fastest == side else "",
    )


def _against(context: Context, row: Row, difference: Difference | None) -> Markup:
    """The verdict, the size, and what would be needed to say more."""
    if difference is None:
        return tag("td", UNKNOWN)
    ends, least = words.difference_interval(difference), words.shows_from(difference)
    chance = f", p {difference.chance:.2g}" if difference.chance is not None else ""
    size = f"{signed_percent(difference.percent)}{chance}{f' ({ends})' if ends else ''}"
    lines = [size, *([f"of {least} it would have been"] if least else []), *row.lacks, difference.enough]
    told = [line for line in lines if line and line not in context.common]
    verdict = tag("b", words.verdict(row, difference))
    marks = _marks(context, row.because)
    small = [tag("small", unbroken(line)) for line in told]
    return tag("td", verdict, marks, *small, class_=f"against {_CLASSES[difference.verdict]}")


def _marks(context: Context, doubts: Iterable[Doubt]) -> Markup:
    """Links to the doubts, each with the words that a screen reader needs."""
    numbers = context.numbered.of(doubts)
    links = [tag("a", str(n), href=f"#doubt-{n}", aria_label=f"doubt {n}") for n in numbers]
    return tag("sup", *(joined(", " if place else "", link) for place, link in enumerate(links))) if links else Markup()
