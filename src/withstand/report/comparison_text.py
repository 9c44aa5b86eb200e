"""A comparison on a terminal: what can be concluded, the doubts, then a table for each set of equal conditions.

What came from outside is shown as text: neither rich's markup nor control characters act in it. Why nothing can be said
of a row stands below all tables, once, under the number beside the verdict.
"""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from withstand.compare.shape import Cell, Comparison, Difference, Group, Row, Verdict
from withstand.metrics.doubts import Doubt
from withstand.report.comparison_words import Notes
from withstand.report.numbers import UNKNOWN, number
from withstand.report.terminal import shown

_WORDS = {
    Verdict.BETTER: ("better", "bold green"),
    Verdict.WORSE: ("worse", "bold red"),
    Verdict.NO_DIFFERENCE: ("none", ""),
    Verdict.UNKNOWN: ("unknown", "yellow"),
}
_WIDE = 100
_SHARE = "share"
_FROM_MAX = 1000


def print_comparison(comparison: Comparison, console: Console) -> None:
    """All of it."""
    notes, shared = Notes(), _shared(comparison)
    console.print()
    console.print(_sides(comparison))
    console.print(Text(_told(shared), style="dim"))
    console.print()
    console.print(Text(shown(comparison.headline), style="bold"))
    for doubt, owners in _doubts(comparison).items():
        who = f"{', '.join(owners)}: " if owners else ""
        console.print(_marked("✗" if doubt.blocking else "?", f"{who}{doubt.sentence}\n→ {doubt.remedy}"))
    for group in comparison.groups:
        console.print()
        _print_title(comparison, group, shared, console)
        console.print(_table(comparison, group, notes, wide=console.width >= _WIDE))
        if longer := _longer(comparison, group):
            console.print(Text(f"To see more, measure longer: {longer}.", style="dim"))
    _print_rest(comparison, notes, console)


def _mark(notes: Notes, sentence: str | None) -> str:
    return f" [{notes.refer([sentence])[0]}]" if sentence else ""


def _sides(comparison: Comparison) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for place, side in enumerate(comparison.sides):
        facts = (side.model, f"by {side.tool}", ", ".join(side.sources[:3]), "" if side.facts else "aggregates only")
        about = " · ".join(shown(fact) for fact in facts if fact)
        role = "baseline" if place == 0 else "against it"
        grid.add_row(Text(role, style="dim"), Text(shown(side.label), style="bold"), Text(about, style="dim"))
    return grid


def _doubts(comparison: Comparison) -> dict[Doubt, list[str]]:
    """Each once, with the sides that raise it; nobody's are those of the whole."""
    found: dict[Doubt, list[str]] = {doubt: [] for doubt in comparison.doubts}
    for side in comparison.sides:
        for doubt in side.doubts:
            found.setdefault(doubt, []).append(side.label)
    return found


def _shared(comparison: Comparison) -> dict[str, str]:
    """Conditions that are the same in all groups."""
    first, *others = [group.conditions for group in comparison.groups]
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


def _told(conditions: Mapping[str, str]) -> str:
    return shown(" · ".join(f"{name} {value}" for name, value in conditions.items()))


def _marked(mark: str, words: str) -> Table:
    grid = Table.grid(padding=(0, 1, 0, 0))
    lines = "\n".join(shown(line) for line in words.splitlines())
    grid.add_row(Text(mark, style="bold red" if mark == "✗" else "bold yellow"), Text(lines))
    return grid


def _print_title(comparison: Comparison, group: Group, shared: Mapping[str, str], console: Console) -> None:
    own = {name: value for name, value in group.conditions.items() if name not in shared}
    forced = "forced · " if comparison.forced else ""
    console.print(Text.assemble((shown(f"{forced}{group.label}"), "bold"), "  ", (_told(own), "dim")))
    for remark in group.remarks:
        if remark not in {doubt.sentence for doubt in comparison.doubts}:
            console.print(_marked("?", remark))


def _table(comparison: Comparison, group: Group, notes: Notes, *, wide: bool) -> Table:
    table = Table(box=None, padding=(0, 2 if wide else 1, 0, 0), collapse_padding=True, pad_edge=False)
    table.add_column("", no_wrap=True)
    for side in comparison.sides:
        table.add_column(Text(shown(side.label), style="bold"), justify="right", overflow="fold", max_width=24)
    if wide:
        table.add_column("fastest by", overflow="fold", max_width=32)
    table.add_column("difference (95 %)", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in group.rows:
        table.add_row(*_cells(comparison, row, notes, wide=wide))
    return table


def _cells(comparison: Comparison, row: Row, notes: Notes, *, wide: bool) -> Iterator[Text]:
    yield Text.assemble(shown(row.title), ("" if row.unit == _SHARE else f" {row.unit}", "dim"))
    for cell in row.cells:
        yield _value(row, cell)
    if wide:
        yield Text(_fastest(comparison, row))
    differences = [d for d in row.differences if d]
    yield Text("\n".join(_difference(d) for d in differences))
    yield _verdicts(differences, _mark(notes, row.remark))


def _fastest(comparison: Comparison, row: Row) -> str:
    if row.fastest is None or row.faster_by_percent is None:
        return UNKNOWN
    return f"{shown(comparison.sides[row.fastest].label)} {row.faster_by_percent:.2f} %"


def _value(row: Row, cell: Cell) -> Text:
    if row.unit == _SHARE and cell.value is not None:
        return Text(f"{100 * cell.value:.2f} %")
    runs = f" ×{cell.runs}" if cell.runs > 1 else ""  # noqa: RUF001  a times sign, as people write it
    return Text(f"{number(cell.value)}{runs}{' ?' if cell.doubts else ''}")


def _difference(difference: Difference) -> str:
    if difference.percent is None:
        return UNKNOWN
    interval = difference.interval
    between = ""
    if interval and interval.low is not None and interval.high is not None:
        between = f" ({_signed(interval.low)} to {_signed(interval.high)})"
    return f"{_signed(difference.percent)} %{between}"


def _signed(percent: float) -> str:
    return f"{percent:+,.0f}" if abs(percent) >= 99.95 else f"{percent:+.1f}"


def _verdicts(differences: Sequence[Difference], mark: str) -> Text:
    text = Text()
    for place, difference in enumerate(differences):
        word, style = _WORDS[difference.verdict]
        text.append("\n" if place else "").append(word, style)
        least = difference.shows_from_percent
        if difference.verdict is Verdict.NO_DIFFERENCE and least is not None:
            text.append(f" (≥ {least:.{0 if least >= 10 else 1}f} %)" if least < _FROM_MAX else "", "dim")
    return text.append(mark, "dim")


def _longer(comparison: Comparison, group: Group) -> str:
    told = []
    for row in group.rows:
        for side, difference in zip(comparison.sides, row.differences, strict=True):
            if difference and difference.enough and difference.interval:
                who = f" of {shown(side.label)}" if len(comparison.sides) > 2 else ""
                told.append(f"{row.title}{who}: {difference.enough}")
    return "; ".join(told)


def _print_rest(comparison: Comparison, notes: Notes, console: Console) -> None:
    console.print()
    for place, sentence in notes.listed():
        console.print(_marked(f"[{place}]", sentence))
    for alone in comparison.unmatched:
        label = shown(comparison.sides[alone.side].label)
        console.print(_marked("–", f"{label} at {alone.what} is left out. {alone.why}"))  # noqa: RUF001  an en dash
    if any(cell.doubts for group in comparison.groups for row in group.rows for cell in row.cells):
        console.print(Text("?: doubts about this value; `withstand audit` tells them.", style="dim"))
    if any(d and d.shows_from_percent for group in comparison.groups for row in group.rows for d in row.differences):
        console.print(Text("none (≥ 5 %): no difference is shown; one of 5 % would have been.", style="dim"))
    console.print()
    console.print(Text(shown(comparison.method), style="dim"))
