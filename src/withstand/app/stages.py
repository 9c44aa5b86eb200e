"""A plan's stages made whole: the warm-up in front, the numbers filled in, workers chosen. Pure."""

import math
from collections.abc import Sequence

import msgspec

from withstand.errors import SpecError
from withstand.load.stage import Stripes
from withstand.spec import Inf, Plan, Stage, Step, Until, Workload, rate_rps_of

_RATE_PER_WORKER_RPS = 1_000
_CONNECTIONS_PER_WORKER = 1_000
_WARMUP = "warm-up"


def all_stages(plan: Plan) -> tuple[Stage, ...]:
    """Every stage made whole; the warm-up first, unless the plan brings its own or wants none.

    Raises:
        SpecError: a stage has neither an end nor a limit.
    """
    stages = filled(plan, plan.stages)
    if plan.num_warmups and not stages[0].warmup:
        return (_warmup(plan, stages), *stages)
    return stages


def filled(plan: Plan, stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages with their workloads, counts and stop rules.

    Raises:
        SpecError: a stage has neither an end nor a limit.
    """
    return tuple(_filled(plan, stage, i) for i, stage in enumerate(stages))


def unlike(stages: Sequence[Stage]) -> list[Stage]:
    """One of all that are measured and draw their prompts alike."""
    measured = [stage for stage in stages if not stage.warmup]
    return list({repr((s.workload, s.arrivals, s.num_prompts, s.duration_s)): s for s in measured}.values())


def _filled(plan: Plan, stage: Stage, index: int) -> Stage:
    workload = stage.workload or plan.workload
    if isinstance(stage.arrivals, Step) and stage.duration_s is None and stage.num_prompts is None:
        stage = msgspec.structs.replace(stage, duration_s=sum(part.duration_s for part in stage.arrivals.parts))
    num_prompts = stage.num_prompts or (workload.num_prompts if stage.duration_s is None else None)
    if num_prompts is None and isinstance(stage.arrivals, Inf) and stage.max_concurrency is None:
        raise SpecError(
            "The plan is wrong: arrivals `inf` with only a duration would send without end; "
            f"give max_concurrency or num_prompts - at `$.stages[{index}]`."
        )
    return msgspec.structs.replace(stage, workload=workload, num_prompts=num_prompts, until=_until(plan, stage))


def _until(plan: Plan, stage: Stage) -> Until | None:
    """The plan's, with the stage's own laid over it; a warm-up is judged by its answers instead."""
    if plan.until is None or stage.warmup:
        return stage.until
    return stage.until.over(plan.until) if stage.until else plan.until


def _warmup(plan: Plan, stages: Sequence[Stage]) -> Stage:
    names = {stage.name for stage in stages}
    first = stages[0]
    return Stage(
        name=_WARMUP if _WARMUP not in names else f"{_WARMUP}-0",
        phase=_WARMUP,
        max_concurrency=min(plan.num_warmups, first.max_concurrency or plan.num_warmups),
        num_prompts=plan.num_warmups,
        workload=_repeatable(first.workload or plan.workload),
        warmup=True,
    )


def _repeatable(workload: Workload) -> Workload:
    """A warm-up may use rows twice; it is not measured."""
    return msgspec.structs.replace(workload, repeat=True)


def stripes_of(plan: Plan, stage: Stage, cores: int, *, nodes: int = 0, needed: int | None = None) -> Stripes:
    """How many processes share the stage, and how.

    With a fleet of several ``nodes``, each has one. ``needed``: the workers that carry it here, where that is known.
    """
    workers = plan.workers or nodes or min(needed or _wanted_workers(stage), max(1, cores))
    workers = min(workers, stage.max_concurrency or workers, stage.num_prompts or workers)
    return Stripes(
        workers=workers,
        cap=stage.max_concurrency,
        closed=stage.is_closed,
        endless=stage.is_closed and stage.num_prompts is None,
    )


def _wanted_workers(stage: Stage) -> int:
    rate_rps = rate_rps_of(stage.arrivals) or 0.0
    at_once = connections_of(stage) or 0
    return max(1, math.ceil(rate_rps / _RATE_PER_WORKER_RPS), math.ceil(at_once / _CONNECTIONS_PER_WORKER))


def connections_of(stage: Stage) -> int | None:
    """The most connections that the stage can need at once; None = only the server knows."""
    if isinstance(stage.arrivals, Inf) and stage.max_concurrency is None:
        return stage.num_prompts
    if stage.max_concurrency is not None and stage.num_prompts is not None:
        return min(stage.max_concurrency, stage.num_prompts)
    return stage.max_concurrency


def preconnect_of(plan: Plan, stage: Stage) -> int:
    """Connections that are opened before the stage: none for a warm-up, whose own would still hold their ports."""
    return 0 if stage.warmup else plan.target.preconnect


def connections_foreseen(plan: Plan, stage: Stage) -> int | None:
    """Those that the stage is known to open, before its start or while it goes on; None = none is known of."""
    return max(connections_of(stage) or 0, preconnect_of(plan, stage)) or None
