"""The table of stages and the doubts on a terminal; plain text where there is none.

What came from outside (names, error texts) is shown as text: neither rich's markup nor control characters act in it.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from withstand.metrics.summary import StageSummary, Summary
from withstand.report.columns import CAPTION, COLUMNS
from withstand.report.numbers import counted, seconds
from withstand.report.standing import Heard, Level, heard, standing

_STYLES = {Level.STANDS: "bold green", Level.DOUBTED: "bold yellow", Level.FALLEN: "bold red"}
_WIDE = 100
_STAGE_WIDTH_MIN = 12


def print_report(summary: Summary, console: Console) -> None:
    """What was measured, whether it stands, the table of stages, then the doubts, loudest first."""
    console.print()
    console.print(Text(_shown(_subject(summary)), style="bold"))
    verdict = standing(summary)
    console.print(Text(verdict.sentence, style=_STYLES[verdict.level]))
    if summary.stages:
        console.print()
        console.print(_table(summary, wide=console.width >= _WIDE))
        console.print(Text(CAPTION, style="dim"))
    for doubt in heard(summary):
        console.print()
        _print_doubt(doubt, console)


def _subject(summary: Summary) -> str:
    duration_s = sum(stage.duration_s or 0.0 for stage in summary.stages)
    requests = sum(stage.attempted for stage in summary.stages)
    facts = [
        summary.model_id,
        summary.target,
        counted(len(summary.stages), "stage"),
        counted(requests, "request"),
        seconds(duration_s) if duration_s else None,
    ]
    return " · ".join(fact for fact in facts if fact)


def _table(summary: Summary, *, wide: bool) -> Table:
    table = Table(box=None, padding=(0, 2 if wide else 1, 0, 0), collapse_padding=True, pad_edge=False)
    table.add_column("\n\nstage", no_wrap=True, overflow="ellipsis", min_width=_STAGE_WIDTH_MIN)
    for column in COLUMNS:
        header = Text("\n".join([column.group, column.part]), justify="right")
        table.add_column(header.append(f"\n{column.unit}", style="dim"), justify="right", no_wrap=True)
    for phase, stages in groupby(summary.stages, key=lambda stage: stage.phase):
        _add_phase(table, phase, stages)
    return table


def _add_phase(table: Table, phase: str | None, stages: Iterable[StageSummary]) -> None:
    if phase:
        table.add_row(Text(_shown(phase), style="italic"))
    indent = "  " if phase else ""
    for stage in stages:
        name = Text(f"{indent}{_shown(stage.name)}", overflow="ellipsis", no_wrap=True)
        table.add_row(name, *_cells(stage))


def _cells(stage: StageSummary) -> Iterator[Text]:
    for column in COLUMNS:
        text = column.cell(stage)
        yield Text(text, style="bold red" if text.endswith("!") else "")


def _print_doubt(doubt: Heard, console: Console) -> None:
    mark, style = ("✗", "bold red") if doubt.blocking else ("?", "bold yellow")
    said = Text.assemble((f"{mark} ", style), _shown(doubt.sentence), (_where(doubt), "dim"))
    console.print(Padding(said, (0, 0)))
    console.print(Padding(Text(f"→ {_shown(doubt.remedy)}"), (0, 0, 0, 2)))


def _where(doubt: Heard) -> str:
    if not doubt.stages:
        return ""
    others = ", and alike" if len(doubt.cases) > 1 else ""
    return f"  [{_shown(', '.join(doubt.stages))}{others}]"


def _shown(text: str) -> str:
    """On one line, without control characters: an escape sequence must not reach the terminal."""
    return "".join(c for c in " ".join(text.split()) if c.isprintable())
