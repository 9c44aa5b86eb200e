"""How long a plan will take, as far as it tells beforehand, and what that costs. Pure.

What still runs at a stage's end is not in it: only the server knows.
"""

from collections.abc import Sequence
from itertools import islice

import msgspec

from withstand.control.patience import least_budget_s
from withstand.report.numbers import counted
from withstand.spec import Arrivals, Inf, LimitSearch, Plan, Ramp, Stage, Step, Trace, rate_rps_of
from withstand.workload.arrivals import due_times_ns

_COUNTED_MAX = 1_000_000
_HOUR_S = 3_600


class Estimate(msgspec.Struct, frozen=True):
    """Of some stages."""

    stages: int
    """Measured ones."""
    known_s: float
    """Of those that can be known, warm-ups too."""
    unknown: tuple[str, ...] = ()
    """The names of the others."""
    warmups: int = 0

    @property
    def known(self) -> int:
        """How many can be known."""
        return self.stages + self.warmups - len(self.unknown)

    def times(self, runs: int) -> "Estimate":
        """Of so many runs, one after another."""
        return Estimate(self.stages * runs, self.known_s * runs, self.unknown * runs, self.warmups * runs)


def estimated(plan: Plan, stages: Sequence[Stage], known: Sequence[Stage] = ()) -> Estimate:
    """Of the stages, and of those that the plan's rates will become: where none of ``known`` has their heading."""
    lengths_s = {stage.name: seconds_of(stage) for stage in stages}
    later = [rates.duration_s for rates in plan.rates for _ in rates.shares if not _decided(rates.phase, known)]
    warmups = sum(stage.warmup for stage in stages)
    return Estimate(
        stages=len(stages) - warmups + len(later),
        known_s=sum(length_s or 0.0 for length_s in lengths_s.values()) + sum(later),
        unknown=tuple(name for name, length_s in lengths_s.items() if length_s is None),
        warmups=warmups,
    )


def to_come(plan: Plan, known: Sequence[Stage]) -> int:
    """How many stages the plan's rates will become, besides those that are ``known``."""
    return sum(len(rates.shares) for rates in plan.rates if not _decided(rates.phase, known))


def _decided(phase: str, stages: Sequence[Stage]) -> bool:
    return any(stage.phase == phase for stage in stages)


def seconds_of(stage: Stage) -> float | None:
    """Until the last request is due; None = that depends on how fast the server answers."""
    by_count_s = _until_last_s(stage.arrivals, stage.num_prompts) if stage.num_prompts else None
    if by_count_s is None or stage.duration_s is None:
        return by_count_s if stage.duration_s is None else stage.duration_s
    return min(by_count_s, stage.duration_s)


def _until_last_s(arrivals: Arrivals, count: int) -> float | None:
    if isinstance(arrivals, Inf | Trace):
        return None
    if rate_rps := rate_rps_of(arrivals):
        return count / rate_rps
    assert isinstance(arrivals, Ramp | Step)
    even = msgspec.structs.replace(arrivals, poisson=False)
    last_ns = max(islice(due_times_ns(even, ""), min(count, _COUNTED_MAX)), default=0)
    return last_ns / 1e9


def in_words(estimate: Estimate, price_per_hour: float | None) -> str:
    """Such as ``13 stages and a warm-up, at least 8 min 0 s (how long …); 0.33 at 2.5 an hour``.

    The price is that of the known time.
    """
    told = counted(estimate.stages, "stage")
    if estimate.warmups:
        told += " and a warm-up" if estimate.warmups == 1 else f" and {estimate.warmups} warm-ups"
    if not estimate.known:
        return f"{told}; how long that takes depends on how fast the server answers."
    more = f" (how long {_listed(estimate.unknown)} is not known beforehand)" if estimate.unknown else ""
    about = "at least" if estimate.unknown else "about"
    price = ""
    if price_per_hour is not None:
        price = f"; {price_per_hour * estimate.known_s / _HOUR_S:,.4g} at {price_per_hour:g} an hour"
    return f"{told}, {about} {lasting(estimate.known_s)} and what still runs at their ends{more}{price}."


def search_in_words(wanted: LimitSearch, *, begins: bool) -> str:
    """What a search will do, and whether its budget is likely to be enough for both ends."""
    crowds = ", crowds of users" if wanted.axis == "rate" and wanted.start is None else ""
    loads = f"Planned: one user alone{crowds}, then load after load" if begins else "Planned: load after load"
    if wanted.budget_s is None:
        return f"{loads}, until the limit is known."
    told = f"{loads}, until the limit is known or {lasting(wanted.budget_s)} are over."
    least_s = least_budget_s(wanted)
    if wanted.budget_s >= least_s:
        return told
    spared = " `--start LOAD` spares the crowds;" if crowds else ""
    return (
        f"{told} That is little: where the server is slow, an end may stay open. A budget of {lasting(least_s)} leaves "
        f"time for three long loads;{spared} `--resume DIR --budget TIME` goes on with a search that was cut."
    )


def _listed(names: Sequence[str]) -> str:
    return f"{names[0]} takes" if len(names) == 1 else f"{len(names)} of them take"


def lasting(seconds: float) -> str:
    """``250 ms``, ``45 s``, ``2 min 30 s``, ``1 h 5 min``."""
    whole = round(seconds)
    if 0 < seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms"
    if whole < 60:
        return f"{seconds:.3g} s"
    if whole < _HOUR_S:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // _HOUR_S} h {whole % _HOUR_S // 60} min"
