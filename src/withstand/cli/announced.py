"""A screen that also tells a stack where the run is, for the stack's monitoring."""

from pathlib import Path

from withstand.app.exposed import POINTER
from withstand.app.screen import Screen, StageProgress
from withstand.files import write_atomically
from withstand.metrics.summary import StageSummary


class Announced:
    """All goes on to another screen."""

    def __init__(self, screen: Screen, stack: Path) -> None:
        self._screen = screen
        self._stack = stack
        self.message = screen.message
        self.step = screen.step

    def opened(self, folder: Path) -> None:
        """The stack's folder holds its path."""
        write_atomically(self._stack / POINTER, str(folder.absolute()).encode())
        self._screen.opened(folder)

    def stage_started(self, name: str, phase: str | None, index: int, of: int) -> None:
        """Goes on."""
        self._screen.stage_started(name, phase, index, of)

    def stage_progress(self, progress: StageProgress) -> None:
        """Goes on."""
        self._screen.stage_progress(progress)

    def stage_finished(self, summary: StageSummary) -> None:
        """Goes on."""
        self._screen.stage_finished(summary)
