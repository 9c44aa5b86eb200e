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
    cell,
    claims_told,
    doubts_between,
    doubts_of,
    in_short,
    statistic,
)
from withstand.report.terminal import print_doubt, print_marked, shown

_STYLES = {
    Standing.STANDS: "green",
    Standing.PARTLY: "yellow",
    Standing.FALLS: "red",
    Standing.UNKNOWN: "magenta",
}
_ROWS_MAX = 40
_WIDE = 100
_ROOMY = 1000


def print_audit(audit: Audit, console: Console) -> None:
    """How many stand, all files, then what lies between them."""
    if told := in_short(audit):
        console.print()
        console.print(Text(told, style="bold"))
    for file in audit.files:
        console.print()
        _print_file(file, console)
    between = doubts_between(audit)
    if between:
        console.print()
        console.print(Text(f"Between the {len(audit.files)} files", style="bold"))
        for doubt in between:
            print_doubt(doubt, console)


def _print_file(file: FileAudit, console: Console) -> None:
    style = _STYLES[file.standing]
    title = Text(f" {TITLES[file.standing]} ", style=f"bold reverse {style}")
    console.print(Text.assemble(title, (f"  {shown(file.path)}", "bold")))
    print_marked("", style, [(file.unreadable or file.headline, style)], console)
    if file.form:
        console.print(Text(shown(file.form), style="dim"))
    for doubt in doubts_of(file):
        console.print()
        print_doubt(doubt, console)
    if file.cases:
        for claims in _fitting(file, console):
            console.print()
            console.print(_table(file, claims, console))
        console.print(Text(LEGEND, style="dim"))
    for left in file.left_out:
        console.print(Text(f"Left out: {shown(left)}", style="dim"))


def _fitting(file: FileAudit, console: Console) -> tuple[Sequence[Claim], ...]:
    """Numbers are never cut: where it is too narrow, times and rates stand one below the other."""
    claims = claims_told(file)
    roomy = console.options.update(width=_ROOMY)
    if console.measure(_table(file, claims, console), options=roomy).maximum <= console.width:
        return (claims,)
    times, rates = [c for c in claims if c in TIMES], [c for c in claims if c not in TIMES]
    return tuple(part for part in (times, rates) if part)


def _table(file: FileAudit, claims: Sequence[Claim], console: Console) -> Table:
    between = 2 if console.width >= _WIDE else 1
    table = Table(box=None, padding=(0, between, 0, 0), collapse_padding=True, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("What can\nbe quoted", overflow="fold", min_width=9)
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
