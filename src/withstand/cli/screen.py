"""Which screen a verb gets: the panel on a terminal, else bars, lines or nothing."""

import contextlib
import sys
from collections.abc import Iterator

from withstand.cli.dashboard import Dashboard
from withstand.cli.terminal import TerminalScreen
from withstand.cli.views import is_drawable, view
from withstand.load.interrupts import ended_as_by_ctrl_c


@contextlib.contextmanager
def terminal_screen(*, quiet: bool, blocks: bool, plain: bool = False) -> Iterator[TerminalScreen]:
    """The screen that fits stderr; it leaves the terminal as it found it, whatever happens."""
    has_panel = not quiet and not plain and _is_possible()
    screen = Dashboard(blocks=blocks) if has_panel else TerminalScreen(view(quiet=quiet, plain=plain), blocks=blocks)
    try:
        with ended_as_by_ctrl_c():
            yield screen
    finally:
        screen.end()


def _is_possible() -> bool:
    """Whether stderr is a terminal on which blocks can be drawn."""
    return is_drawable() and sys.stderr.encoding.lower().startswith("utf")
