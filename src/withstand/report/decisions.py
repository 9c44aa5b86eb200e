"""The table of decisions on a terminal: what for, who, on what evidence, and what stands against it."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from withstand.compare.shape import Decision, Objection
from withstand.report.comparison_words import Marker
from withstand.report.terminal import shown


def print_decisions(decisions: Sequence[Decision], marker: Marker, console: Console) -> None:
    """Nothing, where there is nothing to decide."""
    if not decisions:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, collapse_padding=True)
    table.add_column("Best for", no_wrap=True)
    table.add_column("", min_width=10, overflow="fold")
    table.add_column("on what evidence", ratio=1)
    for decision in decisions:
        winner = Text(shown(decision.winner), style="bold green") if decision.winner else Text("nobody", style="yellow")
        evidence = Text(shown(decision.evidence))
        if decision.against:
            evidence.append(f"\n? {' '.join(_said(one, marker) for one in decision.against)}", style="dim")
        table.add_row(decision.wins_for, winner, evidence)
    console.print()
    console.print(table)


def _said(objection: Objection, marker: Marker) -> str:
    """``Rate not achieved at 30 req/s [3]``, and a full stop."""
    marks = marker.of_objection(objection)
    return f"{shown(objection.remark)}{f' [{marks}]' if marks else ''}."
