"""Stages at rates that nobody can know beforehand: shares of what the stages before were seen to carry. Pure."""

from collections.abc import Collection, Sequence

import msgspec

from withstand.app.budget import SHORTEST_S
from withstand.metrics.summary import StageSummary
from withstand.spec import Arrivals, Gamma, Plan, Poisson, Rates, Stage


def decided(
    plan: Plan, known: Sequence[Stage], done: Sequence[StageSummary], left_s: float | None = None
) -> list[Stage]:
    """The stages that the plan's ``rates`` ask for, to two digits; none for a phase that has stages already.

    ``known`` are all stages of the run, ``done`` the results. Where nothing was carried, nothing can be decided. They
    are shortened so that what still runs at their ends is waited for in ``left_s``: an answer, and above what was
    carried the queue that grows meanwhile. None = there is no budget.
    """
    phases = {stage.phase for stage in known}
    asked = [(rates, best) for rates in plan.rates if rates.phase not in phases and (best := _busiest(done, rates.of))]
    factor = 1.0 if left_s is None or not asked else _factor(asked, left_s)
    by_name = {stage.name: stage for stage in known}
    return [stage for rates, best in asked for stage in _stages(_shortened(rates, factor), by_name, best)]


def _factor(asked: Sequence[tuple[Rates, StageSummary]], left_s: float) -> float:
    answers_s = sum(len(rates.shares) * (best.e2el.mean or 0.0) / 1000 for rates, best in asked)
    needed_s = sum(rates.duration_s * sum(max(1.0, share) for share in rates.shares) for rates, _ in asked)
    return min(1.0, max(0.0, left_s - answers_s) / needed_s)


def _shortened(rates: Rates, factor: float) -> Rates:
    least_s = min(SHORTEST_S, rates.duration_s)
    return msgspec.structs.replace(rates, duration_s=max(least_s, factor * rates.duration_s))


def _busiest(done: Sequence[StageSummary], phase: str) -> StageSummary | None:
    seen = [stage for stage in done if stage.phase == phase and stage.request_throughput]
    return max(seen, key=lambda stage: stage.request_throughput or 0.0, default=None)


def _stages(rates: Rates, known: dict[str, Stage], best: StageSummary) -> list[Stage]:
    workload = rates.workload or known[best.name].workload
    wanted = {float(f"{(best.request_throughput or 0.0) * share:.2g}") for share in rates.shares}
    template = Stage(phase=rates.phase, duration_s=rates.duration_s, workload=workload)
    return [
        msgspec.structs.replace(template, name=_name(rates, rate, known), arrivals=_arrivals(rates, rate))
        for rate in sorted(wanted)
    ]


def _arrivals(rates: Rates, rate_rps: float) -> Arrivals:
    return Poisson(rate_rps) if rates.burstiness == 1 else Gamma(rate_rps, rates.burstiness)


def _name(rates: Rates, rate_rps: float, taken: Collection[str]) -> str:
    """``rate-4``; under another heading than the usual one ``bursts rate-4``, for names are unique."""
    name = f"rate-{rate_rps:g}"
    return name if rates.phase == "sustained" and name not in taken else f"{rates.phase} {name}"
