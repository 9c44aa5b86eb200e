"""Text in columns, of which no cell is ever cut: where a terminal is too narrow, whole columns stay away."""

from collections.abc import Sequence

from msgspec import Struct
from rich.cells import cell_len

_GAP = 2


class Column(Struct, frozen=True):
    """A heading, and a cell for each line."""

    heading: str
    cells: tuple[str, ...]
    right: bool = False
    spare: int = 0
    """The larger, the sooner it stays away; 0 = never."""

    @property
    def width(self) -> int:
        """Of its longest cell."""
        return max(map(cell_len, (self.heading, *self.cells)))

    def line(self, at: int) -> str:
        """Its cell, as wide as all; 0 = its heading."""
        cell = (self.heading, *self.cells)[at]
        room = " " * (self.width - cell_len(cell))
        return room + cell if self.right else cell + room


def lines_of(columns: Sequence[Column], width: int | None) -> list[str]:
    """The headings and each line. Empty columns stay away; ``width`` None = there is room for all."""
    kept = [column for column in columns if any(column.cells)]
    while width is not None and _together(kept) > width and any(column.spare for column in kept):
        kept.remove(max(kept, key=lambda column: column.spare))
    count = 1 + max((len(column.cells) for column in kept), default=-1)
    return [(" " * _GAP).join(column.line(at) for column in kept).rstrip() for at in range(count)]


def _together(columns: Sequence[Column]) -> int:
    return sum(column.width for column in columns) + _GAP * (len(columns) - 1)
