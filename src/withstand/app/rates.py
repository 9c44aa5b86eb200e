"""Stages at rates that nobody can know beforehand: shares of what the stages before were seen to carry. Pure."""

from collections.abc import Collection, Sequence

import msgspec

from withstand.metrics.summary import StageSummary
from withstand.spec import Arrivals, Gamma, Plan, Poisson, Rates, Stage


def decided(plan: Plan, known: Sequence[Stage], done: Sequence[StageSummary]) -> list[Stage]:
    """The stages that the plan's ``rates`` ask for, to two digits; none for a phase that has stages already.

    ``known`` are all stages of the run, ``done`` the results. Where nothing was carried, nothing can be decided.
    """
    made: list[Stage] = []
    for rates in plan.rates:
        if all(stage.phase != rates.phase for stage in known):
            made += _stages(rates, {stage.name: stage for stage in known}, done)
    return made


def _stages(rates: Rates, known: dict[str, Stage], done: Sequence[StageSummary]) -> list[Stage]:
    seen = [s for s in done if s.phase == rates.of and s.request_throughput]
    if not seen:
        return []
    best = max(seen, key=lambda s: s.request_throughput or 0.0)
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
