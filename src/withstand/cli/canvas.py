"""Some lines at the end of a terminal that are drawn again and again in place.

It never hides the cursor: whatever ends the process, the terminal is left as it was found. A terminal that takes
nothing more is not waited for.
"""

import select
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from withstand.cli.output import draw

_UP, _REST_OF_LINE, _REST, _START = "\x1b[{}A", "\x1b[K", "\x1b[J", "\r"


class Canvas:
    """On stderr."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._widths: list[int] = []

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows, now."""
        return self._console.size.width, self._console.size.height

    def draw(self, lines: Sequence[Text]) -> None:
        """Instead of what was drawn before. No line is longer than the terminal is wide."""
        if not self._takes_more():
            return
        texts = [self._ansi(line) for line in lines]
        draw(self._back() + "\n".join(f"{text}{_REST_OF_LINE}" for text in texts) + _REST)
        self._widths = [cell_len(line.plain) for line in lines]

    def clear(self) -> None:
        """Give the lines back; also where nothing is drawn."""
        if self._widths:
            draw(self._back() + _REST)
            self._widths = []

    def _back(self) -> str:
        """To the first line; where the terminal has become narrower, lines have been broken."""
        width = max(1, self.size[0])
        rows = sum(max(1, -(-length // width)) for length in self._widths)
        return _START + (_UP.format(rows - 1) if rows > 1 else "")

    def _takes_more(self) -> bool:
        try:
            _, writable, _ = select.select([], [self._console.file], [], 0)
        except (OSError, ValueError):
            return True
        return bool(writable)

    def _ansi(self, line: Text) -> str:
        """As the terminal takes it: with its colours, or none."""
        with self._console.capture() as captured:
            self._console.print(line, end="", soft_wrap=True)
        return captured.get()
