"""What a use case says while it works, on a terminal: progress to stderr, each stage's block to stdout."""

from pathlib import Path

from withstand.app.screen import StageProgress
from withstand.cli.block import place_and_title, stage_block
from withstand.cli.output import write_result
from withstand.cli.progress import counts, seconds_left, share_done
from withstand.cli.views import View
from withstand.interop.values import plain
from withstand.metrics.rounding import whole_percent
from withstand.metrics.summary import StageSummary


class TerminalScreen:
    """``withstand.app.screen.Screen`` for people."""

    def __init__(self, drawn_on: View, *, blocks: bool) -> None:
        self._view = drawn_on
        self._blocks = blocks
        self._step: str | None = None

    def message(self, text: str) -> None:
        """One sentence."""
        self._view.message(plain(text))

    def step(self, label: str, done: int, total: int | None) -> None:
        """A preparation that takes a while."""
        if label != self._step:
            self._view.begin(plain(label))
        self._step = None if done == total else label
        share = done / total if total else None
        self._view.update(share, "" if share is None else whole_percent(share), 0.0)
        if done == total:
            self._view.end()

    def opened(self, folder: Path) -> None:
        """What is said suffices."""

    def stage_started(self, name: str, phase: str | None, index: int | None, of: int) -> None:
        """A bar, or a line, with the stage's name."""
        self._view.begin(plain(place_and_title(name, phase, index, of)))

    def stage_progress(self, progress: StageProgress) -> None:
        """Counts, tokens a second, time left."""
        texts = (counts(progress), seconds_left(progress))
        self._view.update(share_done(progress), ", ".join(t for t in texts if t), progress.elapsed_s)

    def stage_finished(self, summary: StageSummary) -> None:
        """The classic block, under the stage's name."""
        self._view.end()
        if self._blocks and summary.attempted:
            write_result(f"{stage_block(summary)}\n\n")

    def end(self) -> None:
        """Leave the terminal as it was found."""
        self._view.end()
