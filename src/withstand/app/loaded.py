"""A run, or what other tools' files hold, ready to be shown."""

from collections.abc import Sequence

import msgspec

from withstand.control.limit import Limit
from withstand.control.probe import Told
from withstand.interop.shape import ImportedRun
from withstand.metrics.cold import Met
from withstand.metrics.series import StageSeries
from withstand.metrics.summary import StageSummary, Summary
from withstand.report.about import About


class LoadedStage(msgspec.Struct, frozen=True):
    """One stage's numbers, and its charts if they were asked for."""

    summary: StageSummary
    series: StageSeries | None
    times: tuple[Told | None, ...] = ()
    """Those that were promised, if a limit was looked for."""
    met: Met | None = None
    """What it tells of a cold start, where the run has any."""


class Loaded(msgspec.Struct, frozen=True):
    """A run, ready to be shown."""

    summary: Summary
    series: Sequence[StageSeries]
    """Empty where no charts were asked for."""
    about: About
    damaged_lines: int = 0
    """Lines of the record files that could not be read."""
    imported: tuple[ImportedRun, ...] = ()
    """What of it came from other tools' files, with all that has no place in a summary."""
    limit: Limit | None = None
    """What the run has found, if it looked for a limit."""
    notices: tuple[str, ...] = ()
    """What a reader must know before the numbers: what was refused, what cannot be shown."""
    unread: tuple[str, ...] = ()
    """Why runs that are there are not shown: they are damaged."""
