"""Where progress is drawn: bars on a terminal, lines in a log, or nowhere. Each knows labels, shares and texts only."""

import os
import sys
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from withstand.cli.output import say

_LINE_EVERY_S = 10.0
_DUMB = {"dumb", "unknown"}


class View(Protocol):
    """One thing goes on at a time."""

    def message(self, text: str) -> None:
        """A sentence that stays."""

    def begin(self, label: str) -> None:
        """Something that takes a while begins; what went on before has ended."""

    def update(self, share: float | None, text: str, elapsed_s: float) -> None:
        """How far it is, 0 to 1, where that is known."""

    def end(self) -> None:
        """It is over; also called when nothing goes on."""


def view(*, quiet: bool, plain: bool = False) -> View:
    """The one that fits stderr; ``plain`` asks for lines."""
    if quiet:
        return Nowhere()
    return Bars() if is_drawable() and not plain else Lines()


def is_drawable() -> bool:
    """Whether stderr is a terminal that can draw a line anew."""
    return sys.stderr.isatty() and os.environ.get("TERM") not in _DUMB


class Nowhere:
    """For ``--quiet``."""

    def message(self, text: str) -> None:
        """Unheard."""

    def begin(self, label: str) -> None:
        """Unheard."""

    def update(self, share: float | None, text: str, elapsed_s: float) -> None:
        """Unheard."""

    def end(self) -> None:
        """Unheard."""


class Lines:
    """Plain lines, few enough for a log."""

    def __init__(self) -> None:
        self._label = ""
        self._next_s = _LINE_EVERY_S

    def message(self, text: str) -> None:
        """One line."""
        say(text)

    def begin(self, label: str) -> None:
        """One line."""
        self._label, self._next_s = label, _LINE_EVERY_S
        say(label)

    def update(self, share: float | None, text: str, elapsed_s: float) -> None:  # noqa: ARG002  a log needs no share
        """One line every ten seconds."""
        if elapsed_s >= self._next_s:
            self._next_s = elapsed_s + _LINE_EVERY_S
            say(f"{self._label}: {text}")

    def end(self) -> None:
        """Nothing: the next line says it."""


class Bars:
    """A bar on the last line of a terminal, drawn by whoever calls: no thread of its own beside a measurement."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._progress: Progress | None = None

    def message(self, text: str) -> None:
        """One line above the bar."""
        self._console.print(text, markup=False)

    def begin(self, label: str) -> None:
        """A bar of its own."""
        self.end()
        columns = (TextColumn("{task.description}", markup=False), BarColumn(30), TextColumn("{task.fields[text]}"))
        self._progress = Progress(*columns, console=self._console, auto_refresh=False, transient=True)
        self._progress.add_task(label, total=None, text="")
        self._progress.start()

    def update(self, share: float | None, text: str, elapsed_s: float) -> None:  # noqa: ARG002  the bar shows the share
        """Draw it again."""
        if self._progress:
            task = self._progress.task_ids[0]
            self._progress.update(task, total=None if share is None else 1.0, completed=share or 0.0, text=text)
            self._progress.refresh()

    def end(self) -> None:
        """Give the line back."""
        if self._progress:
            self._progress.stop()
            self._progress = None
