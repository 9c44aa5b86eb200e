"""The table of stages and the doubts on a terminal; plain text where there is none.

What came from outside (names, error texts) is shown as text: neither rich's markup nor control characters act in it.
"""

import textwrap
from collections.abc import Iterable, Sequence
from itertools import chain, groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from withstand.metrics.summary import StageSummary, Summary
from withstand.report import costs, economy, energy, layers, tokens
from withstand.report.agent import agent_lines
from withstand.report.client import run_line
from withstand.report.cold import cold_lines
from withstand.report.columns import Column, StageColumn, captions, columns_of_stages, name_of
from withstand.report.ending import ending_lines
from withstand.report.folding import TextColumn, folded, text_column
from withstand.report.itl import itl_lines
from withstand.report.markup import NO_BREAK, unbroken
from withstand.report.numbers import counted, seconds
from withstand.report.server import server_lines
from withstand.report.standing import Heard, Level, heard, standing

_STYLES = {Level.STANDS: "bold green", Level.DOUBTED: "bold yellow", Level.FALLEN: "bold red"}
_BESIDE = (itl_lines, ending_lines, agent_lines, cold_lines, server_lines)
_WIDE = 100
_NAME_WIDTH_MIN = 8
_TEXT_WIDTH_MIN = 12
"""Of the smaller tables: no number and no word of theirs is longer."""
_NUMBER_WIDTH_MIN = 8
"""Of one with many columns, whose headings may be wrapped: ``12,345.6``, ``< 0.1 %``."""


def print_report(summary: Summary, console: Console, *, title: str = "withstand", ledger: bool = False) -> None:
    """What was measured, whether it stands, the table of stages, what tokens cost, then the doubts, loudest first.

    ``title`` stands above it where neither model nor target is known.
    The token ledger is shown if it is asked for, or where its counts disagree or are estimates.
    """
    verdict = standing(summary)
    console.print()
    console.print(Text(shown(_subject(summary) or title), style="bold"))
    console.print(Text(_extent(summary), style="dim"))
    console.print(Text(verdict.sentence, style=_STYLES[verdict.level]))
    if summary.stages:
        console.print()
        print_tables(_tables(summary, room=console.width), console)
        console.print(Text(shown(" · ".join([*captions(summary), "?: doubts"])), style="dim"))
        if line := run_line(summary):
            console.print(Text(line, style="dim"))
        for line in chain.from_iterable(lines(summary) for lines in _BESIDE):
            console.print(Text(shown(line), style="dim"))
    if ledger or any(map(tokens.tells, summary.stages)):
        _print_small("tokens by", tokens.columns_of(summary), [tokens.CAPTION], summary, console)
    told = [*layers.sentences(summary)]
    _print_small("time by layer", layers.columns_of(summary), told, summary, console, least=_NUMBER_WIDTH_MIN)
    print_costs(summary, console)
    for doubt in heard(summary):
        console.print()
        print_doubt(doubt, console)


def print_costs(summary: Summary, console: Console) -> None:
    """Money, then energy; nothing of what is not known."""
    told = [*costs.sentences(summary), *economy.sentences(summary)]
    _print_small("tokens cost", costs.columns_of(summary), told, summary, console)
    _print_small("energy", energy.columns_of(summary), [*energy.sentences(summary)], summary, console)


def _subject(summary: Summary) -> str:
    return " · ".join(fact for fact in (summary.model_id, summary.target) if fact)


def _extent(summary: Summary) -> str:
    requests = sum(stage.attempted for stage in summary.stages)
    duration_s = sum(stage.duration_s or 0.0 for stage in summary.stages)
    extent = f"{counted(len(summary.stages), 'stage')} · {counted(requests, 'request')}"
    extent += f" · {seconds(duration_s)}" if duration_s else ""
    return f"{extent} · {shown(summary.dataset)}" if summary.dataset else extent


def _tables(summary: Summary, *, room: int) -> list[Table]:
    """Numbers are never cut: where it is narrow names are folded, then the table, its times below its rates."""
    wide = room >= _WIDE
    rows: list[tuple[Text, StageSummary | None]] = []
    for phase, stages in groupby(summary.stages, key=lambda stage: stage.phase):
        if phase:
            rows.append((Text(shown(phase), style="italic"), None))
        indent = " " if phase and wide else ""
        rows += [(Text(f"{indent}{shown(name_of(stage))}"), stage) for stage in stages]
    heading = Text(f"\n\n{'stage':{_NAME_WIDTH_MIN}}")
    names = text_column(heading, (name for name, _ in rows), least=_NAME_WIDTH_MIN)
    shown_stages = [stage for _, stage in rows]
    parts = [[_column(column, shown_stages) for column in part] for part in columns_of_stages(summary)]
    return folded([names], parts, room, gap=2 if wide else 1)


def _column(column: Column, stages: Iterable[StageSummary | None]) -> TextColumn:
    *words, unit = column.stacked
    heading = Text("\n".join(words), justify="right").append(f"\n{unit}", style="dim")
    texts = [column.cell(stage) if stage else "" for stage in stages]
    return text_column(heading, (Text(text, style="bold red" if text.endswith("!") else "") for text in texts))


def _print_small(
    title: str,
    columns: Sequence[StageColumn],
    lines: Sequence[str],
    summary: Summary,
    console: Console,
    *,
    least: int = _TEXT_WIDTH_MIN,
) -> None:
    """Nothing where there is no column."""
    if not columns:
        return
    names = text_column(Text(title), (Text(shown(stage.name)) for stage in summary.stages), least=_NAME_WIDTH_MIN)
    told = [
        text_column(
            Text(column.heading, justify="right"),
            (Text(column.cell(stage)) for stage in summary.stages),
            least=least,
        )
        for column in columns
    ]
    console.print()
    print_tables(folded([names], [told], console.width), console)
    for line in lines:
        console.print(Text(shown(line), style="dim"))


def print_tables(tables: Iterable[Table], console: Console) -> None:
    """With an empty line between them."""
    for place, table in enumerate(tables):
        if place:
            console.print()
        console.print(table)


def print_doubt(doubt: Heard, console: Console, label: str = "") -> None:
    """A mark, and beside it the sentence, where it holds, and the remedy."""
    mark, style = ("✗", "bold red") if doubt.blocking else ("?", "bold yellow")
    paragraphs = ((doubt.sentence, ""), (doubt.where, "dim"), (f"→ {doubt.brief_remedy}", "dim"))
    print_marked(f"{label} {mark}".strip(), style, [(text, look) for text, look in paragraphs if text], console)


def print_marked(mark: str, style: str, paragraphs: Iterable[tuple[str, str]], console: Console) -> None:
    """Paragraphs, each with its style, beside a mark; no number is parted from its unit."""
    first = f"{mark} " if mark else ""
    for text, look in paragraphs:
        for line in textwrap.wrap(unbroken(shown(text)), console.width - len(first)):
            console.print(Text.assemble((first, style), (line.replace(NO_BREAK, " "), look)))
            first = " " * len(first)


def shown(text: str) -> str:
    """On one line, without control characters: an escape sequence must not reach the terminal."""
    return "".join(c for c in " ".join(text.split()) if c.isprintable())
