"""A comparison on a terminal: what can be concluded, the numbered doubts, then a table for each metric or load.

What came from outside is shown as text: neither rich's markup nor control characters act in it. A number behind a
verdict is that of a doubt which forbids it, or is about a value of its row.
"""

from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from withstand.compare.shape import Comparison, Decision, Difference, Group, Row, Verdict
from withstand.report import comparison_words as words
from withstand.report.comparison_brief import Brief, brief_of
from withstand.report.comparison_words import Listed, Marker, Notes, Numbered
from withstand.report.decisions import print_decisions
from withstand.report.folding import TextColumn, folded, text_column, width_of
from withstand.report.numbers import UNKNOWN, decimals_of, signed_percent
from withstand.report.standing import few
from withstand.report.terminal import print_doubt, print_marked, print_tables, shown

_STYLES = {
    Verdict.BETTER: "bold green",
    Verdict.WORSE: "bold red",
    Verdict.NO_DIFFERENCE: "",
    Verdict.UNKNOWN: "yellow",
}
_MARKS = {"fallen": ("✗", "bold red"), "doubted": ("?", "bold yellow"), "stands": ("✓", "bold green")}
_WIDE = 100
_METRICS_MAX = 6
"""So few are all shown; of more those that are looked at first."""
_NAME_WIDTH_MAX = 14
_LABEL_MAX = 14
_VERDICT_WIDTH_MIN = 11
"""``unknown [1]``"""


class _Line(msgspec.Struct, frozen=True):
    """A row of a table, called by its load or by its metric."""

    name: str
    row: Row
    decimals: int


class _Block(msgspec.Struct, frozen=True):
    """A table."""

    title: str
    about: str
    lines: tuple[_Line, ...]

    @property
    def bounded(self) -> bool:
        """Some difference has an interval; without any, ``by`` says it all."""
        return any(difference and difference.interval for line in self.lines for difference in line.row.differences)


class _Shown(msgspec.Struct, frozen=True):
    """What all tables of a comparison have in common."""

    labels: tuple[str, ...]
    marker: Marker
    wide: bool
    stacked: bool = False
    """Intervals stand below their differences, and how far ahead below who is, since the terminal is narrow."""


def print_comparison(comparison: Comparison, decisions: Sequence[Decision], console: Console) -> None:
    """All of it."""
    numbered = Numbered(comparison)
    console.print()
    console.print(Text(shown(words.title(comparison)), style="bold"))
    mark, style = _MARKS[words.level(comparison)]
    print_marked(mark, style, [(comparison.headline, "bold")], console)
    brief = brief_of([side.label for side in comparison.sides], _LABEL_MAX * (1 if console.width < _WIDE else 2))
    _print_sides(comparison, brief, console)
    for place, doubt in enumerate(numbered.heard, start=1):
        console.print()
        print_doubt(brief.doubt(doubt), console, label=f"{place:>2}")
    for place, (remark, labels) in enumerate(words.remarks(comparison).items()):
        if not place:
            console.print()
        told = [(brief.text(remark), ""), (f"at {', '.join(few(labels))}", "dim")]
        print_marked("   ?", "bold yellow", told, console)
    look = _Shown(
        labels=tuple(map(shown, brief.short)),
        marker=Marker(numbered, Notes(), words.common_lack(comparison)),
        wide=console.width >= _WIDE,
    )
    _print_tables(comparison, look, console)
    print_decisions([brief.decision(one) for one in decisions], look.marker, console)
    _print_rest(comparison, look.marker, brief, console)


def _print_sides(comparison: Comparison, brief: Brief, console: Console) -> None:
    """Who is who; what all sides share is said once."""
    shared, own = words.who_is_who(comparison)
    console.print()
    for place, ((label, facts), short) in enumerate(zip(own, brief.short, strict=True)):
        name = shown(label) if short == label else f"{short} = {shown(label)}"
        console.print(Text.assemble((name, "bold"), ("  baseline" if place == 0 else "", "dim")))
        print_marked(" ", "", [(" · ".join(facts), "dim")], console)
    print_marked("", "", [(" · ".join(shared), "dim")], console)


def _print_tables(comparison: Comparison, look: _Shown, console: Console) -> None:
    blocks, left_out = _blocks(comparison)
    for block in blocks:
        console.print()
        console.print(Text.assemble((shown(block.title), "bold"), "  ", (shown(block.about), "dim")))
        print_tables(_fitting(block, look, console.width), console)
    if left_out:
        names = ", ".join(metric.first.title for metric in left_out)
        told = f"Also compared: {names}. See them with --metric NAME, or --output comparison.html."
        print_marked("", "", [(told, "dim")], console)


def _blocks(comparison: Comparison) -> tuple[list[_Block], Sequence[Listed]]:
    """A table for each metric, over the loads; where there is hardly a course, one for each load, over all metrics."""
    if len(comparison.groups) < 3:
        return [_of_load(comparison, group) for group in comparison.groups], ()
    metrics = words.listed(comparison)
    first = list(metrics) if len(metrics) <= _METRICS_MAX else words.opened(metrics)
    return [_of_metric(metric) for metric in first], [metric for metric in metrics if metric not in first]


def _of_load(comparison: Comparison, group: Group) -> _Block:
    prefix = "forced · " if comparison.forced else ""
    lines = [
        _Line(f"{row.title} {words.unit(row)}".strip(), row, decimals_of(cell.value for cell in row.cells))
        for row in group.rows
    ]
    return _Block(f"{prefix}{group.label}", words.own_conditions(comparison, group), tuple(lines))


def _of_metric(metric: Listed) -> _Block:
    about = f"{words.unit(metric.first)}, {words.direction(metric.first)}"
    return _Block(metric.first.title, about, tuple(_Line(g.label, row, metric.decimals) for g, row in metric.pairs))


def _fitting(block: _Block, look: _Shown, room: int) -> list[Table]:
    """No number is cut: where it is narrow, intervals go below their differences, or these below the values."""
    looks = [look, msgspec.structs.replace(look, stacked=True)] if block.bounded else [look]
    return min((_tables(block, each, room) for each in looks), key=len)


def _tables(block: _Block, look: _Shown, room: int) -> list[Table]:
    name, *columns = _columns(block, look)
    values = len(look.labels) + (1 if look.stacked else 2)
    return folded([name], (columns[:values], columns[values:]), room, gap=2 if look.wide else 1)


def _columns(block: _Block, look: _Shown) -> list[TextColumn]:
    """Only names, labels and verdicts may be narrower than what stands in them."""
    headings = [Text(label, style="bold", justify="right") for label in look.labels]
    headings += [Text("fastest\nby")] if look.stacked else [Text("fastest"), Text("by", justify="right")]
    headings += [Text("difference (95 %)")] if block.bounded else []
    rows = [list(_cells(line, look, bounded=block.bounded)) for line in block.lines]
    names, *cells, verdicts = list(zip(*rows, strict=True)) or [()] * (len(headings) + 2)
    columns = [text_column(heading, below) for heading, below in zip(headings, cells, strict=True)]
    for place, values in enumerate(cells[: len(look.labels)]):
        columns[place] = text_column(headings[place], values, least=max([_LABEL_MAX, *map(width_of, values)]))
    told = text_column(
        Text("verdict"), verdicts, least=_VERDICT_WIDTH_MIN if look.stacked or not block.bounded else None
    )
    return [text_column(Text(), names, most=None if look.wide else _NAME_WIDTH_MAX), *columns, told]


def _cells(line: _Line, look: _Shown, *, bounded: bool) -> Iterator[Text]:
    row = line.row
    yield Text(shown(line.name))
    for place, cell in enumerate(row.cells):
        runs = f" ×{cell.runs}" if cell.runs > 1 else ""  # noqa: RUF001  a times sign, as people write it
        best = "bold" if row.fastest == place else ""
        yield Text(f"{words.value(row, cell.value, line.decimals)}{runs}{' ?' if cell.doubts else '  '}", style=best)
    ahead = UNKNOWN if row.fastest is None else look.labels[row.fastest]
    if look.stacked:
        yield Text(ahead if row.fastest is None else f"{ahead}\n{words.faster_by(row)}")
    else:
        yield Text(ahead)
        yield Text(words.faster_by(row))
    differences = [difference for difference in row.differences if difference]
    if bounded:
        yield Text("\n".join(_difference(difference, look) for difference in differences))
    yield _verdicts(row, differences, look)


def _difference(difference: Difference, look: _Shown) -> str:
    ends, between = words.difference_interval(difference), "\n" if look.stacked else " "
    return signed_percent(difference.percent) + (f"{between}({ends})" if ends else "")


def _verdicts(row: Row, differences: Sequence[Difference], look: _Shown) -> Text:
    text = Text()
    said = [(words.short_verdict(row, d), words.shows_from(d), _STYLES[d.verdict]) for d in differences]
    told = said if len(set(said)) > 1 else said[:1]
    apart = "\n" if look.stacked and len(told) == 1 else " "
    for place, (word, least, style) in enumerate(told):
        text.append(f"{chr(10) if place else ''}{f'{look.labels[place + 1]}: ' if len(told) > 1 else ''}", "dim")
        text.append(word, style).append(f"{apart}({least})" if least else "", "dim")
    marks = look.marker.of_row(row)
    return text.append(f" [{marks}]" if marks else "", "dim")


def _print_rest(comparison: Comparison, marker: Marker, brief: Brief, console: Console) -> None:
    """What the marks mean, what was left out, and how it was done."""
    console.print()
    if marker.common:
        print_marked("", "", [(f"unknown = {marker.common[0].lower()}{marker.common[1:]}", "")], console)
    if marker.numbered.heard:
        print_marked("", "", [("? a doubt about this value · [1] the doubt with this number, above", "dim")], console)
    for place, sentence in marker.notes.listed():
        print_marked(f"[{words.letter(place)}]", "", [(brief.text(sentence), "")], console)
    for told in words.unmatched(comparison):
        print_marked("–", "", [(brief.text(told), "")], console)  # noqa: RUF001  an en dash
    if words.some_shown(comparison):
        legend = "not shown (≥ 5 %): no difference is shown; one of 5 % would have been."
        print_marked("", "", [(legend, "dim")], console)
    _print_longer(comparison, brief, console)
    console.print()
    print_marked("", "", [(comparison.method, "dim")], console)


def _print_longer(comparison: Comparison, brief: Brief, console: Console) -> None:
    """How long to measure; a line each where the user asked for it."""
    longer = list(map(brief.text, words.longer(comparison)))
    if comparison.aim_percent:
        none = f"Where no doubt stands against it, a difference of {comparison.aim_percent:g} % would have been shown."
        print_marked("", "", [("To see more, measure longer:" if longer else none, "")], console)
        for one in longer:
            print_marked("–", "", [(one, "")], console)  # noqa: RUF001  an en dash
    elif longer:
        print_marked("", "", [(f"To see more, measure longer: {'; '.join(longer)}.", "")], console)
