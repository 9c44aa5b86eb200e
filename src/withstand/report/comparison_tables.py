"""The comparison page's tables: all verdicts at a glance, and each metric with Fastest, Faster by and verdict.

A small number is that of a doubt at the head of the page, and leads there.
"""

from collections.abc import Iterable, Sequence

import msgspec

from withstand.compare.shape import Comparison, Difference, Group, Row, Verdict
from withstand.metrics.doubts import Doubt
from withstand.report import comparison_words as words
from withstand.report.comparison_words import HEADLINE, Listed, Notes, Numbered
from withstand.report.html_tables import scrollable
from withstand.report.markup import Markup, joined, tag, unbroken
from withstand.report.numbers import UNKNOWN, signed_percent

_GLANCE_MAX = 600
_COLUMNS_MAX = 7
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
_OF_MANY = "~"
"""Not shown among so many, and not equal either: the interval leaves 0 out."""


class Context(msgspec.Struct, frozen=True):
    """What a table refers to: the page's doubts, and notes of its own, under letters."""

    comparison: Comparison
    numbered: Numbered
    common: frozenset[str]
    """What holds for all rows of the page, or of the table, and is said once."""
    notes: Notes


def context_of(comparison: Comparison) -> Context:
    """Gathered once for all tables."""
    said = frozenset(said for said in (words.common_lack(comparison), words.common_cure(comparison)) if said)
    return Context(comparison, Numbered(comparison), said, Notes())


def glance(comparison: Comparison, metrics: Sequence[Listed]) -> Markup:
    """The metrics that people look for first against the sets of conditions; whichever are fewer are the columns."""
    shown = [one for one in metrics if one.metric in HEADLINE] or list(metrics)
    shown = shown[: max(1, _GLANCE_MAX // max(1, len(comparison.groups) * (len(comparison.sides) - 1)))]
    if not shown or len(comparison.sides) < 2:
        return tag("p", "There is nothing to compare.", class_="lead")
    turned = len(comparison.groups) > _COLUMNS_MAX
    shown = shown[:_COLUMNS_MAX] if turned else shown
    names = [one.first.title for one in shown] if turned else [group.label for group in comparison.groups]
    corner = tag("th", "Load" if turned else "Metric", scope="col")
    head = tag("thead", tag("tr", corner, *(tag("th", name, scope="col") for name in names)))
    sides = range(1, len(comparison.sides))
    notes = Notes()
    bodies = [_glance_body(comparison, shown, side, len(names) + 1, notes, turned=turned) for side in sides]
    table = scrollable(tag("table", _key(), head, *bodies, class_="glance"), "Verdicts at a glance")
    return joined(table, noted(notes))


def _key() -> Markup:
    said = {
        Verdict.BETTER: "better",
        Verdict.WORSE: "worse",
        Verdict.NO_DIFFERENCE: "no difference that this data can show",
        Verdict.UNKNOWN: "cannot be concluded",
    }
    parts = [tag("span", tag("b", _SIGNS[which]), f" {word}", class_=_CLASSES[which]) for which, word in said.items()]
    parts.insert(3, tag("span", tag("b", _OF_MANY), " may be chance, of so many that were compared", class_="same"))
    return tag("caption", *(joined(part, "  ") for part in parts))


def _glance_body(
    comparison: Comparison, shown: Sequence[Listed], side: int, width: int, notes: Notes, *, turned: bool
) -> Markup:
    against = f"{comparison.sides[side].label} against {comparison.sides[0].label}"
    head = tag("tr", tag("th", against, scope="rowgroup", colspan=str(width)), class_="phase")
    rows = {(one.metric, id(group)): row for one in shown for group, row in one.pairs}
    if turned:
        lines = [(group.label, [(one.metric, id(group)) for one in shown]) for group in comparison.groups]
    else:
        lines = [(one.first.title, [(one.metric, id(group)) for group in comparison.groups]) for one in shown]
    cells = [(name, [_glance_cell(rows.get(key), side, notes) for key in keys]) for name, keys in lines]
    return tag("tbody", head, *(tag("tr", tag("th", name, scope="row"), *told) for name, told in cells))


def _glance_cell(row: Row | None, side: int, notes: Notes) -> Markup:
    difference = row.differences[side] if row else None
    if row is None or difference is None or difference.percent is None:
        return tag("td", UNKNOWN)
    of_many = words.is_of_many(difference)
    sign = tag("b", _OF_MANY if of_many else _SIGNS[difference.verdict], aria_hidden="true")
    said = tag("span", f" {words.verdict(row, difference)}", class_="unseen")
    referred = tag("sup", ", ".join(map(words.letter, notes.refer(row.cautions)))) if of_many and row.cautions else ""
    return tag("td", sign, " ", signed_percent(difference.percent), said, referred, class_=_CLASSES[difference.verdict])


def metric(context: Context, shown: Listed, *, opened: bool) -> Markup:
    """One metric: a chart and a table."""
    first, sides = shown.first, context.comparison.sides
    cure = words.common_cure_of(row for _, row in shown.pairs)
    own = cure if cure and cure not in context.common else None
    context = msgspec.structs.replace(context, common=context.common | ({own} if own else set()), notes=Notes())
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
        noted(context.notes, own),
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
        marks(context, cell.doubts),
        tag("small", ends) if ends else Markup(),
        class_="best" if row.fastest == side else "",
    )


def _against(context: Context, row: Row, difference: Difference | None) -> Markup:
    """The verdict, the size, what would have been shown, and what would be needed to say more."""
    if difference is None:
        return tag("td", UNKNOWN)
    ends, least = words.difference_interval(difference), words.shows_from(difference)
    chance = f", p {difference.chance:.2g}" if difference.chance is not None else ""
    size = tag("span", f"{signed_percent(difference.percent)}{chance}")
    lines = [f"would show {least}" if least else None, difference.enough]
    told = [joined(size, " ", tag("span", f"({ends})")) if ends else size]
    told += [joined(unbroken(line)) for line in lines if line and line not in context.common]
    verdict = tag("b", words.verdict(row, difference))
    because = marks(context, row.because, [note for note in (*row.lacks, *row.cautions) if note not in context.common])
    small = [tag("small", line) for line in told]
    return tag("td", verdict, because, *small, class_=f"against {_CLASSES[difference.verdict]}")


def marks(context: Context, doubts: Iterable[Doubt], notes: Sequence[str] = ()) -> Markup:
    """Links to the doubts, each with the words that a screen reader needs, and the letters of notes."""
    numbers = context.numbered.of(doubts)
    found = [tag("a", str(n), href=f"#doubt-{n}", aria_label=f"doubt {n}") for n in numbers]
    found += [joined(words.letter(place)) for place in context.notes.refer(notes)]
    return tag("sup", *(joined(", " if place else "", mark) for place, mark in enumerate(found))) if found else Markup()


def noted(notes: Notes, cure: str | None = None) -> Markup:
    """The notes that the letters lead to."""
    said = [joined(tag("b", words.letter(place)), " ", unbroken(sentence)) for place, sentence in notes.listed()]
    said += [joined(words.to_conclude_more(cure))] if cure else []
    return tag("ul", *(tag("li", one) for one in said), class_="notes") if said else Markup()
