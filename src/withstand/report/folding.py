"""Tables of names and what is said of them, on a terminal: where it is too narrow, a table is folded.

Folded, it is several tables below one another, each of which begins with the names: no number is cut, nothing is left
out. Knows widths, not what stands in the columns.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest

import msgspec
from rich.cells import cell_len, chop_cells
from rich.table import Table
from rich.text import Text

_NAME_WIDTH_MIN = 8
_PIECES = re.compile(r"[^\s,]+,*\s*|[\s,]+")
"""What a name is folded between: words, and what commas part."""
_FINER = re.compile(r"[^-_/=:+@]+[-_/=:+@]*|[-_/=:+@]+")
"""Where a word is wider than the column."""


class TextColumn(msgspec.Struct, frozen=True):
    """A heading, what stands below it (justified alike), its width, and the least of it where it may be wrapped."""

    heading: Text
    cells: tuple[Text, ...]
    width: int
    least: int


def text_column(
    heading: Text, cells: Iterable[Text], *, least: int | None = None, most: int | None = None
) -> TextColumn:
    """As wide as the widest line in it, if that is not too much."""
    cells = tuple(cells)
    widest = max(map(width_of, (heading, *cells)))
    width = widest if most is None else min(most, widest)
    return TextColumn(heading, cells, width, width if least is None else min(least, width))


def width_of(cell: Text) -> int:
    """That of its widest line."""
    return max(map(cell_len, cell.plain.split("\n")))


def folded(lead: Sequence[TextColumn], parts: Sequence[Sequence[TextColumn]], room: int, gap: int = 1) -> list[Table]:
    """One table if there is room, else at least one a part; all begin with ``lead``, whose last are the names.

    A name is broken within a word only where a third of the room is too little for that.
    """
    *marks, names = lead
    words = [cell_len(word.rstrip()) for cell in names.cells for word in _PIECES.findall(cell.plain)]
    least = min(names.width, max([names.least, *words]))
    whole = [*marks, msgspec.structs.replace(names, least=least), *chain.from_iterable(parts)]
    if _fits(whole, room, gap):
        return [_table(whole, room, gap)]
    least = min(names.width, max(_NAME_WIDTH_MIN, room // 3))
    lead = [*marks, msgspec.structs.replace(names, least=least)]
    return [_table(columns, room, gap) for part in parts for columns in _runs(lead, part, room, gap)]


def _runs(lead: Sequence[TextColumn], part: Sequence[TextColumn], room: int, gap: int) -> list[list[TextColumn]]:
    """As few as there is room for, and as even as can be."""
    runs: list[list[TextColumn]] = []
    for many in range(1, len(part) + 1):
        size = -(-len(part) // many)
        runs = [[*lead, *part[i : i + size]] for i in range(0, len(part), size)]
        if all(_fits(run, room, gap) for run in runs):
            break
    return runs


def _fits(columns: Sequence[TextColumn], room: int, gap: int) -> bool:
    return sum(column.least + gap for column in columns) - gap <= room


def _table(columns: Sequence[TextColumn], room: int, gap: int) -> Table:
    table = Table(box=None, padding=(0, gap, 0, 0), collapse_padding=True, pad_edge=False)
    cells: list[list[Text]] = []
    for column, width in zip(columns, _widths(columns, room - gap * (len(columns) - 1)), strict=True):
        heading = _broken(column.heading, width)
        table.add_column(heading, justify=heading.justify or "left", overflow="fold", width=width)
        cells.append([_broken(cell, width) for cell in column.cells])
    for row in zip_longest(*cells, fillvalue=Text()):
        table.add_row(*row)
    return table


def _broken(cell: Text, width: int) -> Text:
    """On as many lines as its widest needs."""
    if width_of(cell) <= width:
        return cell
    lines = [part for line in cell.split("\n", allow_blank=True) for part in line.divide(_seams(line.plain, width))]
    for line in lines:
        line.rstrip()
    return Text("\n", justify=cell.justify).join(lines)


def _seams(line: str, width: int) -> list[int]:
    """Where new lines begin: as late as there is room."""
    seams, at, used = [], 0, 0
    for piece in _pieces(line, width):
        if used and used + cell_len(piece.rstrip()) > width:
            seams.append(at)
            used = 0
        at += len(piece)
        used += cell_len(piece)
    return seams


def _pieces(line: str, width: int) -> Iterator[str]:
    for word in _PIECES.findall(line):
        for piece in [word] if cell_len(word.rstrip()) <= width else _FINER.findall(word):
            yield from [piece] if cell_len(piece.rstrip()) <= width else chop_cells(piece, width)


def _widths(columns: Sequence[TextColumn], room: int) -> list[int]:
    """What is too much is taken from the widest that may be wrapped, the last first."""
    widths = [column.width for column in columns]
    while sum(widths) > room and (spare := [i for i, c in enumerate(columns) if widths[i] > c.least]):
        widths[max(reversed(spare), key=widths.__getitem__)] -= 1
    return widths
