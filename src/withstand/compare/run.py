"""One measured run as the comparison sees it, whoever measured it: its setting, its numbers, its doubts."""

from collections.abc import Mapping

import msgspec

from withstand.compare.estimate import Estimate
from withstand.compare.setting import Setting
from withstand.interop.shape import ImportedRun
from withstand.metrics.summary import StageSummary
from withstand.spec import TokenPrice

_NEAR_SHARE = 0.9


class Schedule(msgspec.Struct, frozen=True):
    """When requests were sent, thinned: enough to recognise the same draw."""

    requests: int
    offsets_ns: tuple[int, ...]
    """At even ranks, the first and the last included, from the first."""


class Turn(msgspec.Struct, frozen=True):
    """Where a run stands in a measurement of two sides in turn: in which pair, and at which place over all blocks."""

    pair: int
    place: int


class ComparedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of a run folder, or one run of a foreign file."""

    source: str
    """Where it is from, for a reader."""
    setting: Setting
    summary: StageSummary
    estimates: Mapping[str, Estimate]
    """By ``metric.statistic``, and by name for what is one number."""
    schedule: Schedule | None = None
    """None where there is none, or it is not known."""
    price_per_hour: float | None = None
    token_price: TokenPrice | None = None
    notes: Mapping[str, str] = {}
    """Metric → how this tool's definition departs from ours."""
    imported: ImportedRun | None = None
    turn: Turn | None = None
    """None where the sides were not measured in turn."""


def one_schedule(one: ComparedRun, other: ComparedRun) -> bool:
    """Whether both were sent the same number of requests, each within about a request's place of its twin."""
    a, b = one.schedule, other.schedule
    if a is None or b is None or a.requests != b.requests or len(a.offsets_ns) < 2:
        return False
    gap_ns = max(a.offsets_ns[-1], b.offsets_ns[-1]) / (a.requests - 1)
    near = sum(abs(x - y) <= gap_ns for x, y in zip(a.offsets_ns, b.offsets_ns, strict=True))
    return near >= _NEAR_SHARE * len(a.offsets_ns)


def is_copy(one: ComparedRun, other: ComparedRun) -> bool:
    """Whether both are one measurement: sent at the same nanoseconds, and alike to the last digit of every number."""
    told = [{key: estimate.value for key, estimate in run.estimates.items()} for run in (one, other)]
    measured = any(not value.is_integer() for value in map(float, told[0].values()))
    alike = one.schedule == other.schedule and one.summary.duration_s == other.summary.duration_s
    return measured and alike and told[0] == told[1]


class ComparedSide(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one of the things that are compared."""

    label: str
    sources: tuple[str, ...]
    tool: str
    runs: tuple[ComparedRun, ...]
    empty: tuple[str, ...] = ()
    """Those of its sources, as they stand in the file system, in which nothing was measured."""
