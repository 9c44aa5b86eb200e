"""What a use case says while it works. The command line draws it; tests listen to it."""

from pathlib import Path
from typing import Protocol

import msgspec

from withstand.control.limit import Limit
from withstand.metrics.summary import StageSummary, Summary


class StageProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a stage is. ``planned`` is None where only a duration ends it."""

    elapsed_s: float
    planned: int | None
    duration_s: float | None
    sent: int
    done: int
    failed: int
    in_flight: int
    output_tokens: int
    silent_s: float = 0.0
    """For how long the most silent worker has said nothing."""


class Screen(Protocol):
    """Where progress goes."""

    def message(self, text: str) -> None:
        """One sentence."""

    def step(self, label: str, done: int, total: int | None) -> None:
        """A preparation that takes a while; it is over when done = total."""

    def opened(self, folder: Path) -> None:
        """The run's folder is there: who wants to see more than is said here may follow it."""

    def stage_started(self, name: str, phase: str | None, index: int | None, of: int) -> None:
        """Stage ``index`` (from 1) of ``of`` that are measured begins; None = it is a warm-up."""

    def stage_progress(self, progress: StageProgress) -> None:
        """A few times a second."""

    def stage_finished(self, summary: StageSummary) -> None:
        """A measured stage's numbers, the moment that they exist; warm-ups are not shown."""


class Outcome(msgspec.Struct, frozen=True):
    """How a use case ended: the process's exit code, and where the result lies."""

    exit_code: int
    folder: Path
    summary: Summary
    missed: str | None = None
    """Which stages missed the SLO."""
    unmeasured: str | None = None
    """Why the exit code is 3."""
    limit: Limit | None = None
    """What was found, if a limit was looked for."""
