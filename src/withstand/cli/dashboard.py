"""A panel of live figures while a stage goes on, where the terminal has room for it; else the bar.

It reads the run's folder, by the process that runs, for a bounded time twice a second: whoever sends is not disturbed.
"""

from pathlib import Path

from rich.console import Console

from withstand import clock
from withstand.app.follow import Follower
from withstand.app.screen import StageProgress
from withstand.cli.block import place_and_title
from withstand.cli.canvas import Canvas
from withstand.cli.panel import COLUMNS_MIN, ROWS_MIN, panel
from withstand.cli.terminal import TerminalScreen
from withstand.cli.views import Bars
from withstand.metrics.live import Told
from withstand.metrics.summary import StageSummary

_EVERY_NS = 500_000_000
_LOOK_S = 0.005


class Dashboard(TerminalScreen):
    """A screen with a panel."""

    def __init__(self, *, blocks: bool) -> None:
        console = Console(stderr=True, highlight=False)
        super().__init__(Bars(console), blocks=blocks)
        self._canvas = Canvas(console)
        self._follower: Follower | None = None
        self._next_ns = 0
        self._label = ""
        self._has_bar = False

    def opened(self, folder: Path) -> None:
        """Its records will be read."""
        self._follower = Follower(folder, _LOOK_S)

    def step(self, label: str, done: int, total: int | None) -> None:
        """A bar, in the panel's place."""
        self._canvas.clear()
        super().step(label, done, total)

    def stage_started(self, name: str, phase: str | None, index: int | None, of: int) -> None:
        """The panel will tell; a bar begins only where that has no room."""
        self._label = place_and_title(name, phase, index, of)
        self._has_bar = False
        self._view.end()
        self._next_ns = 0

    def message(self, text: str) -> None:
        """One sentence, above the panel, which is drawn again at the next look."""
        self._canvas.clear()
        super().message(text)
        self._next_ns = 0

    def stage_progress(self, progress: StageProgress) -> None:
        """Twice a second."""
        if self._follower is None or not self._fits():
            self._begin_bar()
            super().stage_progress(progress)
            return
        now_ns = clock.now_ns()
        if now_ns < self._next_ns:
            return
        self._end_bar()
        self._follower.tell(_told(progress))
        width, height = self._canvas.size
        self._canvas.draw(panel(self._follower.look(), width - 1, height - 1))
        self._next_ns = clock.now_ns() + _EVERY_NS

    def _begin_bar(self) -> None:
        self._canvas.clear()
        if not self._has_bar:
            self._view.begin(self._label)
        self._has_bar = True

    def _end_bar(self) -> None:
        if self._has_bar:
            self._view.end()
        self._has_bar = False

    def _fits(self) -> bool:
        width, height = self._canvas.size
        return width >= COLUMNS_MIN and height >= ROWS_MIN

    def stage_finished(self, summary: StageSummary) -> None:
        """The classic block, if any, in its place."""
        if self._blocks:
            self._canvas.clear()
        super().stage_finished(summary)

    def end(self) -> None:
        """Leave the terminal as it was found."""
        self._canvas.clear()
        super().end()


def _told(progress: StageProgress) -> Told:
    return Told(
        elapsed_s=progress.elapsed_s,
        sent=progress.sent,
        done=progress.done,
        failed=progress.failed,
        in_flight=progress.in_flight,
        output_tokens=progress.output_tokens,
    )
