"""Tables drawn in text: Markdown, box-drawing characters, ``+---+`` grids; and CSV. Pure; knows no metrics."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from itertools import zip_longest

import msgspec

from withstand.interop.blocks import lines_of

_BAR = re.compile(r"[|│┃║]")
_RULE = re.compile(r"^[\s|│┃║+\-=:─━═┌┐└┘├┤┬┴┼┏┓┗┛┡┩╇┳┻╋┠┨╔╗╚╝╠╣╦╩╬╒╕╘╛╞╡╪]+$")
_SECTION = re.compile(r"^(?:─{2,}|-{2,}|={2,}) .* (?:─{2,}|-{2,}|={2,})$")
CUT = "… (cut off?)"
_COLUMNS_MIN = 2
_HEADING_MAX = 200


class Table(msgspec.Struct, frozen=True):
    """A header and rows of cells; ``heading`` is the last text line above it. Lines count from 1."""

    heading: str
    line: int
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def dicts(self) -> list[dict[str, str]]:
        """Rows by column; of two columns with one name the first."""
        return [{n: c for n, c in reversed(list(zip(self.header, row, strict=False)))} for row in self.rows]  # noqa: C416


def find(text: str) -> list[Table]:
    """All tables of a text, in order."""
    tables: list[Table] = []
    heading, first = "", 0
    rows: list[list[str]] = []
    *lines, last = lines_of(text)
    lines += ["" if _is_cut(last) else last, ""]
    for number, line in enumerate(lines, start=1):
        cells = _cells(line)
        if cells is not None:
            first = first if rows else number
            rows.append(cells)
        elif rows and _RULE.match(line) and line.strip():
            continue
        else:
            tables += _made(heading, first, rows)
            rows = []
            heading = line.strip()[:_HEADING_MAX] if line.strip() and not _RULE.match(line) else heading
    return tables


def _is_cut(last: str) -> bool:
    """A row at the very end of a text, without its last bar: its last cell may be half a number."""
    bare = last.strip()
    return bool(bare) and bool(_BAR.search(bare)) and not _BAR.match(bare[-1])


def _made(heading: str, line: int, rows: Sequence[list[str]]) -> list[Table]:
    if len(rows) < 2:
        return []
    header, *body = rows
    return [Table(heading, line, tuple(header), tuple(tuple(row) for row in _unwrapped(body)))]


def _cells(line: str) -> list[str] | None:
    """A row's cells; None where the line is no row, or only draws."""
    bars = _BAR.findall(line)
    if len(bars) < _COLUMNS_MIN or _RULE.match(line):
        return None
    inner = line.strip()
    inner = inner[1:] if _BAR.match(inner) else inner
    inner = inner[:-1] if inner and _BAR.match(inner[-1]) else inner
    return [_plain(cell) for cell in _BAR.split(inner)]


def _plain(cell: str) -> str:
    """Without Markdown's emphasis and code marks."""
    return " ".join(cell.replace("**", "").replace("`", "").split())


def _unwrapped(rows: Iterable[list[str]]) -> list[list[str]]:
    """A long first cell goes on in a row that is otherwise empty; a number that goes on below its row is broken.

    A title between rows (``── Latency ──``) is none of both.
    """
    whole: list[list[str]] = []
    for row in rows:
        if _SECTION.match(row[0]):
            continue
        if whole and row[0] and not any(row[1:]):
            whole[-1] = [f"{whole[-1][0]} {row[0]}", *whole[-1][1:]]
        elif whole and not row[0] and any(row):
            pairs = zip_longest(whole[-1], row, fillvalue="")
            whole[-1] = [f"{above}… {below}" if below else above for above, below in pairs]
        else:
            whole.append(row)
    return whole


def csv_rows(text: str) -> tuple[list[list[str]], int | None]:
    """The cells of a CSV, and the line at which it cannot be read on: its quotes do not match, or a cell is endless.

    Without a last newline the last cell is marked as cut off.
    """
    reader = csv.reader(StringIO(text), strict=True)
    rows: list[list[str]] = []
    try:
        rows.extend(row for row in reader if any(cell.strip() for cell in row))
    except csv.Error:
        return rows, reader.line_num
    if rows and not text.endswith(("\n", "\r")):
        rows[-1][-1] += CUT
    return rows, None


def csv_whole(rows: Sequence[list[str]]) -> list[list[str]]:
    """Rows with as many cells as the first, and a last one that is cut off: any other is shifted somewhere."""
    return [row for row in rows if _is_whole(row, rows[0])]


def csv_odd_lines(rows: Sequence[list[str]]) -> list[int]:
    """The lines that are left out, of a table without blank lines."""
    return [i for i, row in enumerate(rows, start=1) if not _is_whole(row, rows[0])]


def _is_whole(row: Sequence[str], header: Sequence[str]) -> bool:
    return len(row) == len(header) or row[-1].endswith(CUT)


def csv_dicts(rows: Sequence[Sequence[str]]) -> list[Mapping[str, str]]:
    """Rows by the names of the first."""
    header, *body = rows
    names = [name.strip() for name in header]
    return [dict(zip(names, row, strict=False)) for row in body]
