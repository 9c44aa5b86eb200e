"""What every rule is given, and the few ways in which their sentences put a number."""

import msgspec

from withstand.metrics.context import StageContext
from withstand.metrics.evidence import Evidence
from withstand.metrics.summary import Distribution, StageSummary
from withstand.metrics.trend import Growth


class Case(msgspec.Struct, frozen=True):
    """One stage before its judges."""

    summary: StageSummary
    evidence: Evidence
    context: StageContext
    backlog: Growth | None = None
    """More and more requests were on their way: how many at first, and at last."""


def number(value: float) -> str:
    """Three digits or all of the whole ones, thousands with commas."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:z,.{digits}f}"


def median_of(distribution: Distribution) -> float | None:
    """In ms."""
    return distribution.percentiles.get("p50")
