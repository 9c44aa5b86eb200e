"""A screen that also tells a stack's monitoring where the run is, and keeps in the end what that has seen."""

from pathlib import Path

from withstand import clock
from withstand.app.board import catch_up_s, keep_board
from withstand.app.exposed import POINTER
from withstand.app.report import report_again
from withstand.app.screen import Screen, StageProgress
from withstand.errors import WithstandError
from withstand.files import write_atomically
from withstand.metrics.summary import StageSummary
from withstand.runs import RunFolder
from withstand.spec.stack import Monitoring
from withstand.stack.monitoring import MONITORING
from withstand.stack.standing import Standing


class Announced:
    """All goes on to another screen."""

    def __init__(self, screen: Screen, standing: Standing, monitoring: Monitoring) -> None:
        self._screen = screen
        self._standing = standing
        self._scrape_s = monitoring.scrape_s
        self._since_s: float | None = None
        self.message = screen.message
        self.step = screen.step

    def opened(self, folder: Path) -> None:
        """The stack's folder holds its path."""
        write_atomically(self._standing.folder / POINTER, str(folder.absolute()).encode())
        self._since_s = self._since_s or clock.wall_s()
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

    def keep(self, folder: Path) -> None:
        """The dashboard as it was during all that was measured, in ``folder``; what it cannot be is said, no more."""
        if self._since_s is None:
            return
        url = next(one.base_url for one in self._standing.blueprint.processes if one.name == MONITORING)
        clock.sleep_s(catch_up_s(self._scrape_s))
        try:
            path = keep_board(folder, url, self._standing.name, self._since_s, self._scrape_s)
            if RunFolder.is_one(folder):  # its report leads to what lies beside it
                report_again(folder)
        except WithstandError as e:
            self.message(f"The dashboard is not kept: {e}")
        else:
            self.message(f"What the monitoring saw: {path}")


def announced(screen: Screen, standing: Standing) -> Screen:
    """The same screen where the stack has no monitoring."""
    monitoring = standing.blueprint.made_of.monitoring
    return Announced(screen, standing, monitoring) if monitoring else screen


def kept(screen: Screen, folder: Path) -> None:
    """After the last stage, while the stack is up."""
    if isinstance(screen, Announced):
        screen.keep(folder)
