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
from withstand.report.folding import TextColumn, folded, text_column
from withstand.report.terminal import print_doubt, print_marked, print_tables, shown

_STYLES = {
    Standing.STANDS: "green",
    Standing.PARTLY: "yellow",
    Standing.FALLS: "red",
    Standing.UNKNOWN: "magenta",
}
_ROWS_MAX = 40
_WIDE = 100


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
    if audit.left_out:
        console.print()
        _print_left_out(audit.left_out, console)


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
        console.print()
        print_tables(_tables(file, console.width), console)
        console.print(Text(LEGEND, style="dim"))
    _print_left_out(file.left_out, console)


def _print_left_out(left_out: Sequence[str], console: Console) -> None:
    for left in left_out:
        console.print(Text(f"Left out: {shown(left)}", style="dim"))


def _tables(file: FileAudit, room: int) -> list[Table]:
    """Numbers are never cut: where it is too narrow, times and rates stand one below the other."""
    cases, more = file.cases[:_ROWS_MAX], len(file.cases) - _ROWS_MAX
    marks = [Text(MARKS[case.standing], style=f"bold {_STYLES[case.standing]}") for case in cases]
    names = [Text(shown(case.name)) for case in cases]
    if more > 0:
        names.append(Text(f"… and {more} more runs (--format json has all)", style="dim"))
    lead = [text_column(Text(), marks), text_column(Text("What can\nbe quoted"), names)]
    claims = claims_told(file)
    times, rates = [c for c in claims if c in TIMES], [c for c in claims if c not in TIMES]
    parts = [[_column(file, claim) for claim in part] for part in (times, rates)]
    return folded(lead, parts, room, gap=2 if room >= _WIDE else 1)


def _column(file: FileAudit, claim: Claim) -> TextColumn:
    below = f"{statistic(file, claim)} {UNITS[claim]}".strip()
    heading = Text(f"{CLAIM_TITLES[claim]}\n", justify="right").append(below, style="dim")
    return text_column(heading, (_cell(cell(case.findings, claim)) for case in file.cases[:_ROWS_MAX]))


def _cell(found: tuple[str, Standing] | None) -> Text:
    if found is None:
        return Text("")
    value, standing = found
    return Text.assemble(value, " ", (MARKS[standing], _STYLES[standing]))
