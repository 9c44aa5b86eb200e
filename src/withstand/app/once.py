"""A screen for runs that follow one another: what each of them would say again is said once."""

from pathlib import Path

from withstand.app.screen import Screen, StageProgress
from withstand.metrics.summary import StageSummary


class OnceScreen:
    """``Screen``, in front of another one."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._said: set[str] = set()

    def message(self, text: str) -> None:
        """Unless it was said before."""
        if text not in self._said:
            self._said.add(text)
            self._screen.message(text)

    def step(self, label: str, done: int, total: int | None) -> None:
        """As it comes."""
        self._screen.step(label, done, total)

    def opened(self, folder: Path) -> None:
        """As it comes."""
        self._screen.opened(folder)

    def stage_started(self, name: str, phase: str | None, index: int | None, of: int) -> None:
        """As it comes."""
        self._screen.stage_started(name, phase, index, of)

    def stage_progress(self, progress: StageProgress) -> None:
        """As it comes."""
        self._screen.stage_progress(progress)

    def stage_finished(self, summary: StageSummary) -> None:
        """As it comes."""
        self._screen.stage_finished(summary)
