"""An audit on a terminal: one headline a file, its doubts with their arithmetic, then what can be quoted."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from withstand.audit.shape import TIMES, Audit, Claim, FileAudit, Standing
from withstand.audit.words import CLAIM_TITLES
from withstand.report.audit_parts import (
    LEGEND,
    MARKS,
    TITLES,
    UNITS,
    Said,
    cell,
    claims_told,
    doubts_between,
    doubts_of,
    statistic,
)
from withstand.report.terminal import shown

_STYLES = {
    Standing.STANDS: "green",
    Standing.PARTLY: "yellow",
    Standing.FALLS: "red",
    Standing.UNKNOWN: "magenta",
}
_ROWS_MAX = 40
_WIDE = 100


def print_audit(audit: Audit, console: Console) -> None:
    """All files, then what lies between them."""
    for file in audit.files:
        console.print()
        _print_file(file, console)
    between = doubts_between(audit)
    if between:
        console.print()
        console.print(Text(f"Between the {len(audit.files)} files", style="bold"))
        for said in between:
            console.print(_doubt(said))


def _print_file(file: FileAudit, console: Console) -> None:
    style = _STYLES[file.standing]
    title = Text(f" {TITLES[file.standing]} ", style=f"bold reverse {style}")
    console.print(Text.assemble(title, (f"  {shown(file.path)}", "bold")))
    console.print(Text(shown(file.unreadable or file.headline), style=style))
    if file.form:
        console.print(Text(shown(file.form), style="dim"))
    for said in doubts_of(file):
        console.print()
        console.print(_doubt(said))
    if file.cases:
        for claims in _fitting(claims_told(file), console.width):
            console.print()
            console.print(_table(file, claims))
        console.print(Text(LEGEND, style="dim"))
    for left in file.left_out:
        console.print(Text(f"Left out: {shown(left)}", style="dim"))


def _doubt(said: Said) -> Table:
    """A mark, and beside it the sentences, where each holds, and the remedy."""
    text = Text()
    for sentence, where in said.sentences:
        text.append(shown(sentence))
        text.append(f"  [{shown(where)}]\n" if where else "\n", style="dim")
    text.append(f"→ {shown(said.remedy)}", style="dim")
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_row(Text(said.mark, style="bold red" if said.blocking else "bold yellow"), text)
    return grid


def _fitting(claims: Sequence[Claim], width: int) -> tuple[Sequence[Claim], ...]:
    """Numbers are never cut: where it is narrow, times and rates stand one below the other."""
    times, rates = [c for c in claims if c in TIMES], [c for c in claims if c not in TIMES]
    return (claims,) if width >= _WIDE else tuple(part for part in (times, rates) if part)


def _table(file: FileAudit, claims: Sequence[Claim]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), collapse_padding=True, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("What can be quoted", overflow="fold", min_width=18)
    for claim in claims:
        below = f"{statistic(file, claim)} {UNITS[claim]}".strip()
        heading = Text(f"{CLAIM_TITLES[claim]}\n", justify="right").append(below, style="dim")
        table.add_column(heading, justify="right", no_wrap=True)
    for case in file.cases[:_ROWS_MAX]:
        mark = Text(MARKS[case.standing], style=f"bold {_STYLES[case.standing]}")
        table.add_row(mark, Text(shown(case.name)), *(_cell(cell(case.findings, c)) for c in claims))
    more = len(file.cases) - _ROWS_MAX
    if more > 0:
        table.add_row("", Text(f"… and {more} more runs (--format json has all)", style="dim"))
    return table


def _cell(found: tuple[str, Standing] | None) -> Text:
    if found is None:
        return Text("")
    value, standing = found
    return Text.assemble(value, " ", (MARKS[standing], _STYLES[standing]))
