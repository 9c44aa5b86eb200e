"""What a use case says while it works, on a terminal: progress to stderr, each stage's block to stdout."""

import contextlib
from collections.abc import Iterator

from withstand.app.screen import StageProgress
from withstand.cli.output import rendered, write_result
from withstand.cli.progress import counts, seconds_left, share_done
from withstand.cli.views import View, view
from withstand.metrics.summary import StageSummary
from withstand.report.classic import Style, classic
from withstand.report.client import stage_line


class TerminalScreen:
    """``withstand.app.screen.Screen`` for people."""

    def __init__(self, drawn_on: View, *, blocks: bool) -> None:
        self._view = drawn_on
        self._blocks = blocks
        self._step: str | None = None

    def message(self, text: str) -> None:
        """One sentence."""
        self._view.message(text)

    def step(self, label: str, done: int, total: int | None) -> None:
        """A preparation that takes a while."""
        if label != self._step:
            self._view.begin(label)
        self._step = None if done == total else label
        share = done / total if total else None
        self._view.update(share, "" if share is None else f"{share:.0%}", 0.0)
        if done == total:
            self._view.end()

    def stage_started(self, name: str, phase: str | None, index: int, of: int) -> None:
        """A bar, or a line, with the stage's name."""
        self._view.begin(f"[{index}/{of}] {stage_title(name, phase)}")

    def stage_progress(self, progress: StageProgress) -> None:
        """Counts, tokens a second, time left."""
        texts = (counts(progress), seconds_left(progress))
        self._view.update(share_done(progress), ", ".join(t for t in texts if t), progress.elapsed_s)

    def stage_finished(self, summary: StageSummary) -> None:
        """The classic block, under the stage's name."""
        self._view.end()
        if self._blocks:
            write_result(f"{stage_block(summary)}\n\n")


@contextlib.contextmanager
def terminal_screen(*, quiet: bool, blocks: bool) -> Iterator[TerminalScreen]:
    """A screen that leaves the terminal as it found it, whatever happens."""
    drawn_on = view(quiet=quiet)
    try:
        yield TerminalScreen(drawn_on, blocks=blocks)
    finally:
        drawn_on.end()


def stage_block(summary: StageSummary, style: Style = "vllm", *, backend: str | None = None) -> str:
    """The title, the classic block, and how true it is."""
    lines = [stage_title(summary.name, summary.phase), classic(summary, style, backend=backend)]
    if line := stage_line(summary):
        lines.append(rendered(lambda console: console.print(line, markup=False, highlight=False)).rstrip())
    return "\n".join(lines)


def stage_title(name: str, phase: str | None) -> str:
    """``sustained: rate-4``; the phase is not said twice."""
    return name if phase in {None, name} else f"{phase}: {name}"
