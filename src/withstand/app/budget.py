"""``--budget``: a plan made to fit into a time, and kept within it while it runs. Pure: the caller has the clock.

Beforehand, durations are scaled down by one factor. A part of the budget stays free for what still runs at the stages'
ends, which only the server knows. At run time no stage begins that cannot end in what is left, and the wait for the
last answers of a stage (``drain_s``) is never longer than that.
"""

import math
import statistics
from collections.abc import Callable, Sequence

import msgspec

from withstand.app.estimate import estimated, lasting, seconds_of
from withstand.app.stages import filled
from withstand.errors import UsageError
from withstand.spec import Arrivals, Plan, Rates, Stage
from withstand.spec.arrivals import Ramp, Step

FILLED = 0.8
"""The share of a budget that durations may take."""
WARMUP = 1 - FILLED
"""The share of what is left that a warm-up may take, its last answers with it."""
_EXACT = 1 - 1e-9
"""Sums of scaled durations are off by rounding."""
SHORTEST_S = 2.0
"""A stage that is scaled below tells nothing."""


def fitted(plan: Plan) -> Plan:
    """The plan, its durations scaled down where they do not fit into its budget.

    Raises:
        UsageError: it would have to be scaled down to nothing.
    """
    if plan.budget_s is None:
        return plan
    lengths = _lengths(plan)
    factor = min(1.0, lengths.factor(plan.budget_s))
    least = min(1.0, SHORTEST_S / lengths.shortest_s)
    if factor < least * _EXACT:
        raise UsageError(
            f"--budget: {lasting(plan.budget_s)} would leave {lasting(lengths.shortest_s * factor)} for the shortest "
            f"stage; give {lasting(math.ceil(lengths.budget_s(least)))}, or a plan of fewer stages."
        )
    return scaled(plan, factor)


def of_length(plan: Plan, budget_s: float) -> Plan:
    """The plan with this budget, which its durations fill: they are scaled up, too."""
    return msgspec.structs.replace(scaled(plan, _lengths(plan).factor(budget_s)), budget_s=budget_s)


class _Lengths(msgspec.Struct, frozen=True):
    """Of a plan's stages together, in seconds."""

    scalable_s: float
    fixed_s: float
    """Of those that end by their number of prompts, where a rate tells when."""
    shortest_s: float
    """Of those that can be scaled; without any, one that need not be."""

    def factor(self, budget_s: float) -> float:
        """What durations are to be multiplied by to fill their share of a budget."""
        return max(0.0, budget_s * FILLED - self.fixed_s) / self.scalable_s if self.scalable_s else 1.0

    def budget_s(self, factor: float) -> float:
        """What is needed for that."""
        return (self.fixed_s + factor * self.scalable_s) / FILLED


def _lengths(plan: Plan) -> _Lengths:
    stages = filled(plan, plan.stages)
    known_s = estimated(plan, stages).known_s
    fixed_s = sum(seconds_of(stage) or 0.0 for stage in stages if stage.duration_s is None)
    durations = [s.duration_s for s in stages if s.duration_s] + [rates.duration_s for rates in plan.rates]
    return _Lengths(known_s - fixed_s, fixed_s, min(durations, default=SHORTEST_S))


def scaled(plan: Plan, factor: float) -> Plan:
    """Every duration times the factor; numbers of prompts and rates stay."""
    stages = tuple(_scaled(stage, factor) for stage in plan.stages)
    return msgspec.structs.replace(plan, stages=stages, rates=tuple(_scaled_rates(r, factor) for r in plan.rates))


def _scaled(stage: Stage, factor: float) -> Stage:
    duration_s = None if stage.duration_s is None else stage.duration_s * factor
    return msgspec.structs.replace(stage, duration_s=duration_s, arrivals=_scaled_arrivals(stage.arrivals, factor))


def _scaled_arrivals(arrivals: Arrivals, factor: float) -> Arrivals:
    """What has a course of its own runs through it faster."""
    if isinstance(arrivals, Ramp):
        return msgspec.structs.replace(arrivals, duration_s=arrivals.duration_s * factor)
    if isinstance(arrivals, Step):
        parts = (msgspec.structs.replace(p, duration_s=p.duration_s * factor) for p in arrivals.parts)
        return msgspec.structs.replace(arrivals, parts=tuple(parts))
    return arrivals


def _scaled_rates(rates: Rates, factor: float) -> Rates:
    return msgspec.structs.replace(rates, duration_s=rates.duration_s * factor)


class Budget:
    """What is left while the run goes on. ``spent_ns`` tells how long it has lasted; without a limit, all fits."""

    def __init__(self, limit_s: float | None, spent_ns: Callable[[], int]) -> None:
        self._limit_s = limit_s
        self._spent_ns = spent_ns

    def left_s(self) -> float | None:
        """None = there is no limit."""
        return None if self._limit_s is None else self._limit_s - self._spent_ns() / 1e9

    def why_not(self, stage: Stage, drain_s: float) -> str | None:
        """One sentence on why the stage cannot end in time; None = it can.

        ``drain_s`` is how long its last answers are likely to take.
        """
        left_s = self.left_s()
        if left_s is None:
            return None
        needed_s = (seconds_of(stage) or 0.0) + drain_s
        if left_s > 0 and needed_s <= left_s:
            return None
        needs = f"needs {lasting(needed_s)}" if needed_s else "has no time to begin"
        return f"it {needs}, and {lasting(max(0.0, left_s))} of the budget is left"

    def bounded(self, stage: Stage, drain_s: float) -> Stage:
        """The stage, with an end by time: without one of its own, that of the budget.

        A warm-up leaves the stages their time: it has its share, and of that the second half for its last answers.
        """
        left_s = self.left_s()
        if left_s is None or seconds_of(stage) is not None:
            return stage
        if stage.warmup:
            return msgspec.structs.replace(stage, duration_s=max(left_s * WARMUP / 2, 1e-3))
        return msgspec.structs.replace(stage, duration_s=max(left_s - drain_s, left_s / 2, 1e-3))

    def drain_ns(self, stage: Stage, drain_s: float) -> int:
        """How long to wait for the last answers: as the plan says, but not beyond the budget."""
        left_s = self.left_s()
        if left_s is not None:
            left_s = left_s * WARMUP if stage.warmup else left_s
            drain_s = min(drain_s, max(0.0, left_s - (seconds_of(stage) or 0.0)))
        return int(drain_s * 1e9)


class Lasted(msgspec.Struct, frozen=True):
    """A stage that is over."""

    stage: Stage
    seconds: float


def likely_s(stage: Stage, done: Sequence[Lasted]) -> float:
    """How long a stage may take whose length only the server knows: as long as the same one did in an earlier cycle."""
    if seconds_of(stage) is not None:
        return 0.0
    return max((one.seconds for one in done if is_same(one.stage, stage)), default=0.0)


def is_same(one: Stage, other: Stage) -> bool:
    """Whether they are one stage of two cycles; an end that a budget has set makes no other of it."""
    return msgspec.structs.replace(one, name=other.name, duration_s=other.duration_s) == other


def likely_drain_s(stage: Stage, done: Sequence[Lasted]) -> float:
    """How long the last answers of a stage may take to come, from those that ended by time.

    As long as at the last one of its phase, for loads rise; the first of a phase takes what is usual. 0 before anything
    was seen.
    """
    drains = [(one.stage.phase, max(0.0, one.seconds - by)) for one in done if (by := one.stage.duration_s) is not None]
    alike = [drain_s for phase, drain_s in drains if phase == stage.phase]
    return alike[-1] if alike else statistics.median_high([drain_s for _, drain_s in drains] or [0.0])
