"""A comparison on a terminal: what can be concluded, the doubts, then a table for each set of equal conditions.

What came from outside is shown as text: neither rich's markup nor control characters act in it. Why nothing can be said
of a row stands below all tables, once, under the number beside the verdict.
"""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from withstand.compare.shape import Cell, Comparison, Difference, Group, Row, Verdict
from withstand.metrics.doubts import Doubt
from withstand.report.numbers import UNKNOWN, number

_WORDS = {
    Verdict.BETTER: ("better", "bold green"),
    Verdict.WORSE: ("worse", "bold red"),
    Verdict.NO_DIFFERENCE: ("none shown", ""),
    Verdict.UNKNOWN: ("unknown", "yellow"),
}
_WIDE = 100
_FROM_MAX = 1000


def print_comparison(comparison: Comparison, console: Console) -> None:
    """All of it."""
    notes = _Notes()
    console.print()
    console.print(_sides(comparison))
    console.print()
    console.print(Text(shown(comparison.headline), style="bold"))
    for doubt in _doubts(comparison):
        console.print(_marked("✗" if doubt.blocking else "?", f"{doubt.sentence}\n→ {doubt.remedy}"))
    for group in comparison.groups:
        _print_group(comparison, group, notes, console)
    _print_rest(comparison, notes, console)


def shown(text: str) -> str:
    """On one line, without control characters: an escape sequence must not reach the terminal."""
    return "".join(c for c in " ".join(text.split()) if c.isprintable())


class _Notes:
    """Sentences, each with a number."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def mark(self, sentence: str | None) -> str:
        if not sentence:
            return ""
        if sentence not in self.sentences:
            self.sentences.append(sentence)
        return f" [{self.sentences.index(sentence) + 1}]"


def _sides(comparison: Comparison) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for place, side in enumerate(comparison.sides):
        facts = (side.model, f"by {side.tool}", ", ".join(side.sources[:3]), "" if side.facts else "aggregates only")
        about = " · ".join(shown(fact) for fact in facts if fact)
        role = "baseline" if place == 0 else "against it"
        grid.add_row(Text(role, style="dim"), Text(shown(side.label), style="bold"), Text(about, style="dim"))
    return grid


def _doubts(comparison: Comparison) -> Iterator[Doubt]:
    seen = set()
    for doubt in (*comparison.doubts, *(d for side in comparison.sides for d in side.doubts)):
        if doubt.sentence not in seen:
            seen.add(doubt.sentence)
            yield doubt


def _marked(mark: str, words: str) -> Table:
    grid = Table.grid(padding=(0, 1, 0, 0))
    lines = "\n".join(shown(line) for line in words.splitlines())
    grid.add_row(Text(mark, style="bold red" if mark == "✗" else "bold yellow"), Text(lines))
    return grid


def _print_group(comparison: Comparison, group: Group, notes: _Notes, console: Console) -> None:
    console.print()
    told = " · ".join(f"{name} {value}" for name, value in group.conditions.items())
    forced = "forced · " if comparison.forced else ""
    console.print(Text.assemble((shown(f"{forced}{group.label}"), "bold"), "  ", (shown(told), "dim")))
    for remark in group.remarks:
        if remark not in {doubt.sentence for doubt in comparison.doubts}:
            console.print(_marked("?", remark))
    console.print(_table(comparison, group, notes, wide=console.width >= _WIDE))
    if longer := _longer(comparison, group):
        console.print(Text(f"To see more, measure longer: {longer}.", style="dim"))


def _table(comparison: Comparison, group: Group, notes: _Notes, *, wide: bool) -> Table:
    table = Table(box=None, padding=(0, 2 if wide else 1, 0, 0), collapse_padding=True, pad_edge=False)
    table.add_column("")
    for side in comparison.sides:
        table.add_column(Text(shown(side.label), style="bold"), justify="right", overflow="fold", max_width=24)
    table.add_column("fastest", overflow="fold", max_width=24)
    table.add_column("faster by", justify="right", no_wrap=True)
    table.add_column("difference (95 %)", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in group.rows:
        table.add_row(*_cells(comparison, row, notes))
    return table


def _cells(comparison: Comparison, row: Row, notes: _Notes) -> Iterator[Text]:
    yield Text.assemble(row.title, (f" {row.unit}", "dim"))
    for cell in row.cells:
        yield _value(row, cell)
    yield Text(UNKNOWN if row.fastest is None else shown(comparison.sides[row.fastest].label))
    yield Text(UNKNOWN if row.faster_by_percent is None else f"{row.faster_by_percent:.2f} %")
    differences = [d for d in row.differences if d]
    yield Text("\n".join(_difference(d) for d in differences))
    yield _verdicts(differences, notes.mark(row.remark))


def _value(row: Row, cell: Cell) -> Text:
    if row.unit == "share" and cell.value is not None:
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
            text.append(f", from {least:.2g} %" if least < _FROM_MAX else "", "dim")
    return text.append(mark, "dim")


def _longer(comparison: Comparison, group: Group) -> str:
    told = []
    for row in group.rows:
        for side, difference in zip(comparison.sides, row.differences, strict=True):
            if difference and difference.enough and difference.interval:
                who = f" of {shown(side.label)}" if len(comparison.sides) > 2 else ""
                told.append(f"{row.title}{who}: {difference.enough}")
    return "; ".join(told)


def _print_rest(comparison: Comparison, notes: _Notes, console: Console) -> None:
    console.print()
    for place, sentence in enumerate(notes.sentences, start=1):
        console.print(_marked(f"[{place}]", sentence))
    for alone in comparison.unmatched:
        label = shown(comparison.sides[alone.side].label)
        console.print(_marked("–", f"{label} at {alone.what} is left out. {alone.why}"))  # noqa: RUF001  an en dash
    if any(cell.doubts for group in comparison.groups for row in group.rows for cell in row.cells):
        console.print(Text("?: doubts about this value; `withstand audit` tells them.", style="dim"))
    console.print()
    console.print(Text(shown(comparison.method), style="dim"))
