"""A comparison on a terminal: what can be concluded, the numbered doubts, then a table for each metric or load.

What came from outside is shown as text: neither rich's markup nor control characters act in it. A number behind a
verdict is that of the doubt which forbids it.
"""

from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from withstand.compare.shape import Comparison, Decision, Difference, Group, Row, Verdict
from withstand.report import comparison_words as words
from withstand.report.comparison_words import Listed, Marker, Notes, Numbered
from withstand.report.decisions import print_decisions
from withstand.report.numbers import UNKNOWN, decimals_of, signed_percent
from withstand.report.standing import few
from withstand.report.terminal import print_doubt, print_marked, shown

_STYLES = {
    Verdict.BETTER: "bold green",
    Verdict.WORSE: "bold red",
    Verdict.NO_DIFFERENCE: "",
    Verdict.UNKNOWN: "yellow",
}
_MARKS = {"fallen": ("✗", "bold red"), "doubted": ("?", "bold yellow"), "stands": ("✓", "bold green")}
_WIDE = 100
_ROOMY = 1000
_METRICS_MAX = 6
"""So few are all shown; of more those that are looked at first."""
_NAME_WIDTH_MIN, _NAME_WIDTH_MAX = 14, 22
_LABEL_MAX = 14


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
    """Intervals stand below their differences, since the terminal is narrow."""


def print_comparison(comparison: Comparison, decisions: Sequence[Decision], console: Console) -> None:
    """All of it."""
    numbered = Numbered(comparison)
    console.print()
    console.print(Text(shown(words.title(comparison)), style="bold"))
    mark, style = _MARKS[words.level(comparison)]
    print_marked(mark, style, [(comparison.headline, "bold")], console)
    _print_sides(comparison, console)
    for place, doubt in enumerate(numbered.heard, start=1):
        console.print()
        print_doubt(doubt, console, label=f"{place:>2}")
    for place, (remark, labels) in enumerate(words.remarks(comparison).items()):
        if not place:
            console.print()
        print_marked("   ?", "bold yellow", [(remark, ""), (f"at {', '.join(few(labels))}", "dim")], console)
    look = _Shown(
        labels=_short_labels(comparison, console),
        marker=Marker(numbered, Notes(), words.common_lack(comparison)),
        wide=console.width >= _WIDE,
    )
    _print_tables(comparison, look, console)
    print_decisions(decisions, look.marker, console)
    _print_rest(comparison, look.marker, console)


def _print_sides(comparison: Comparison, console: Console) -> None:
    """Who is who; what all sides share is said once."""
    shared, own = words.who_is_who(comparison)
    short = _short_labels(comparison, console)
    console.print()
    for place, (label, facts) in enumerate(own):
        name = shown(label) if short[place] == shown(label) else f"{short[place]} = {shown(label)}"
        console.print(Text.assemble((name, "bold"), ("  baseline" if place == 0 else "", "dim")))
        print_marked(" ", "", [(" · ".join(facts), "dim")], console)
    print_marked("", "", [(" · ".join(shared), "dim")], console)


def _short_labels(comparison: Comparison, console: Console) -> tuple[str, ...]:
    """As the tables call the sides: by letters, where names would leave no room for numbers."""
    labels = tuple(shown(side.label) for side in comparison.sides)
    most = _LABEL_MAX if console.width < _WIDE else 2 * _LABEL_MAX
    if all(len(label) <= most for label in labels):
        return labels
    return tuple(words.letter(place).upper() for place in range(1, len(labels) + 1))


def _print_tables(comparison: Comparison, look: _Shown, console: Console) -> None:
    blocks, left_out = _blocks(comparison)
    for block in blocks:
        console.print()
        console.print(Text.assemble((shown(block.title), "bold"), "  ", (shown(block.about), "dim")))
        console.print(_fitting(block, look, console))
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


def _fitting(block: _Block, look: _Shown, console: Console) -> Table:
    """No number is cut: where it is narrow, intervals go below their differences."""
    table = _table(block, look)
    roomy = console.options.update(width=_ROOMY)
    if not block.bounded or console.measure(table, options=roomy).maximum <= console.width:
        return table
    return _table(block, msgspec.structs.replace(look, stacked=True))


def _table(block: _Block, look: _Shown) -> Table:
    table = Table(box=None, padding=(0, 2 if look.wide else 1, 0, 0), collapse_padding=True, pad_edge=False)
    names = min(max((len(line.name) for line in block.lines), default=0), _NAME_WIDTH_MIN)
    table.add_column("", overflow="fold", min_width=names, max_width=None if look.wide else _NAME_WIDTH_MAX)
    for label in look.labels:
        table.add_column(Text(label, style="bold"), justify="right", overflow="fold", max_width=24, min_width=8)
    table.add_column("fastest", overflow="fold", max_width=24)
    table.add_column("by", justify="right", no_wrap=True)
    if block.bounded:
        table.add_column("difference (95 %)", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    for line in block.lines:
        table.add_row(*_cells(line, look, bounded=block.bounded))
    return table


def _cells(line: _Line, look: _Shown, *, bounded: bool) -> Iterator[Text]:
    row = line.row
    yield Text(shown(line.name))
    for place, cell in enumerate(row.cells):
        runs = f" ×{cell.runs}" if cell.runs > 1 else ""  # noqa: RUF001  a times sign, as people write it
        best = "bold" if row.fastest == place else ""
        yield Text(f"{words.value(row, cell.value, line.decimals)}{runs}{' ?' if cell.doubts else '  '}", style=best)
    yield Text(UNKNOWN if row.fastest is None else look.labels[row.fastest])
    yield Text(words.faster_by(row))
    differences = [difference for difference in row.differences if difference]
    if bounded:
        yield Text("\n".join(_difference(difference, stacked=look.stacked) for difference in differences))
    yield _verdicts(row, differences, look)


def _difference(difference: Difference, *, stacked: bool) -> str:
    ends, between = words.difference_interval(difference), "\n" if stacked else " "
    return signed_percent(difference.percent) + (f"{between}({ends})" if ends else "")


def _verdicts(row: Row, differences: Sequence[Difference], look: _Shown) -> Text:
    text = Text()
    said = [(words.short_verdict(row, d), words.shows_from(d), _STYLES[d.verdict]) for d in differences]
    told = said if len(set(said)) > 1 else said[:1]
    for place, (word, least, style) in enumerate(told):
        text.append(f"{chr(10) if place else ''}{f'{look.labels[place + 1]}: ' if len(told) > 1 else ''}", "dim")
        text.append(word, style).append(f" ({least})" if least else "", "dim")
    marks = look.marker.of_row(row)
    return text.append(f" [{marks}]" if marks else "", "dim")


def _print_rest(comparison: Comparison, marker: Marker, console: Console) -> None:
    """What the marks mean, what was left out, and how it was done."""
    console.print()
    if marker.common:
        print_marked("", "", [(f"unknown = {marker.common[0].lower()}{marker.common[1:]}", "")], console)
    if marker.numbered.heard:
        print_marked("", "", [("? a doubt about this value · [1] the doubt with this number, above", "dim")], console)
    for place, sentence in marker.notes.listed():
        print_marked(f"[{words.letter(place)}]", "", [(sentence, "")], console)
    for told in words.unmatched(comparison):
        print_marked("–", "", [(told, "")], console)  # noqa: RUF001  an en dash
    if any(d and words.shows_from(d) for group in comparison.groups for row in group.rows for d in row.differences):
        print_marked("", "", [("none (≥ 5 %): no difference is shown; one of 5 % would have been.", "dim")], console)
    if longer := words.longer(comparison):
        print_marked("", "", [(f"To see more, measure longer: {longer}.", "")], console)
    console.print()
    print_marked("", "", [(comparison.method, "dim")], console)
