"""The table of cells as Markdown: a row a trial, a column a client; and its place in a document."""

from collections.abc import Mapping
from typing import Final

from benchmarks.conformance.cell import Cell
from benchmarks.conformance.trials import Trial
from benchmarks.peers.client import Client

from withstand.testing import BEHAVIOURS

Cells = Mapping[tuple[str, str], Cell]
"""By trial and client."""

BEGIN: Final = "<!-- the table of benchmarks/conformance begins -->"
END: Final = "<!-- the table of benchmarks/conformance ends -->"


def table(trials: list[Trial], clients: list[Client], cells: Cells) -> str:
    """What each client made of each trial, and how often it was right."""
    heads = [f"{client.name} {client.version}" for client in clients]
    rows = [[f"`{trial.name}`" if trial.name in BEHAVIOURS else trial.name] for trial in trials]
    for row, trial in zip(rows, trials, strict=True):
        row += [_text(cells.get((trial.name, client.name))) for client in clients]
    score = ["**right**", *(_score(trials, client, cells) for client in clients)]
    lines = [["behaviour", *heads], ["---"] * (len(clients) + 1), *rows, score]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(cell: Cell | None) -> str:
    return "not run" if cell is None else str(cell)


def _score(trials: list[Trial], client: Client, cells: Cells) -> str:
    played = [cell for trial in trials if (cell := cells.get((trial.name, client.name)))]
    return f"**{sum(cell.is_right for cell in played)} of {len(played)}**"


def put_into(document: str, table_text: str) -> str:
    """The document with this table between its marks.

    Raises:
        SystemExit: it has no marks.
    """
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"--write: the file must hold {BEGIN} and {END}; the table goes between them.")
    return f"{before}{BEGIN}\n\n{table_text}\n\n{END}{after}"
