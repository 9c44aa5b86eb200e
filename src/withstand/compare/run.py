"""One measured run as the comparison sees it, whoever measured it: its setting, its numbers, its doubts."""

from collections.abc import Mapping

import msgspec

from withstand.compare.estimate import Estimate
from withstand.compare.setting import Setting
from withstand.interop.shape import ImportedRun
from withstand.metrics.summary import StageSummary


class ComparedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of a run folder, or one run of a foreign file."""

    source: str
    """Where it is from, for a reader."""
    setting: Setting
    summary: StageSummary
    estimates: Mapping[str, Estimate]
    """By ``metric.statistic``, and by name for what is one number."""
    notes: Mapping[str, str] = {}
    """Metric → how this tool's definition departs from ours."""
    imported: ImportedRun | None = None


class ComparedSide(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one of the things that are compared."""

    label: str
    sources: tuple[str, ...]
    tool: str
    runs: tuple[ComparedRun, ...]
