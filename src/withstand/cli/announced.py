"""A screen that also tells a stack's monitoring where the run is, and keeps in the end what that has seen."""

import contextlib
from pathlib import Path

from withstand import clock
from withstand.app.board import catch_up_s, keep_board, span_s
from withstand.app.exposed import POINTER
from withstand.app.report import report_again
from withstand.app.screen import Screen, StageProgress
from withstand.cli.output import say
from withstand.errors import WithstandError
from withstand.files import is_there, write_atomically
from withstand.metrics.summary import StageSummary
from withstand.report.board import BOARD_NAME
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

    def stage_started(self, name: str, phase: str | None, index: int | None, of: int) -> None:
        """Goes on."""
        self._screen.stage_started(name, phase, index, of)

    def stage_progress(self, progress: StageProgress) -> None:
        """Goes on."""
        self._screen.stage_progress(progress)

    def stage_finished(self, summary: StageSummary) -> None:
        """Goes on."""
        self._screen.stage_finished(summary)

    def keep(self, folder: Path) -> None:
        """The dashboard as it was during all that was measured, in ``folder``; where it cannot be, that is said."""
        if self._since_s is not None:
            clock.sleep_s(catch_up_s(self._scrape_s))
            self._keep(folder, self._since_s, None)
        elif not is_there(folder / BOARD_NAME) and (measured := span_s(folder)):
            self._keep_belated(folder, *measured)

    def _keep_belated(self, folder: Path, since_s: float, until_s: float) -> None:
        """Of a run that was complete and lacks its board, as one that was killed while that was made."""
        if self._standing.state.began_s > since_s:
            _not_kept(folder, "monitoring: what it saw is not kept: it went with the stack that was up then.")
            return
        self._keep(folder, since_s, min(until_s + catch_up_s(self._scrape_s), clock.wall_s()))

    def _keep(self, folder: Path, since_s: float, until_s: float | None) -> None:
        url = next(one.base_url for one in self._standing.blueprint.processes if one.name == MONITORING)
        try:
            path = keep_board(folder, url, self._standing.name, since_s, self._scrape_s, until_s)
            if RunFolder.is_one(folder):  # its report leads to what lies beside it
                report_again(folder)
        except WithstandError as e:
            _not_kept(folder, f"monitoring: what it saw is not kept: {e}")
        else:
            self.message(f"What the monitoring saw: {path}")


def _not_kept(folder: Path, why: str) -> None:
    """Said however quiet the screen is, and in the report."""
    say(f"withstand: {why}")
    if RunFolder.is_one(folder):
        with contextlib.suppress(WithstandError):  # a full disk is told of by others
            report_again(folder, why)


def announced(screen: Screen, standing: Standing) -> Screen:
    """The same screen where the stack has no monitoring."""
    monitoring = standing.blueprint.made_of.monitoring
    return Announced(screen, standing, monitoring) if monitoring else screen


def kept(screen: Screen, folder: Path) -> None:
    """After the last stage, while the stack is up."""
    if isinstance(screen, Announced):
        screen.keep(folder)
