"""What a run means for a bill: the largest load that it shows, break-even there, and a day of use. Pure."""

from collections.abc import Sequence

from withstand.metrics.breakeven import break_even, mix_of
from withstand.metrics.cost import busiest_within, turned
from withstand.metrics.idle import DAY_S, HOUR_S, Day, Demand, by_gaps, scaled_to_zero
from withstand.metrics.rates import telling
from withstand.metrics.summary import BreakEven, Economy, Interval, StageSummary, Sustained
from withstand.spec import Price, Usage

_HOURS_A_DAY = 24.0


def largest_seen(stages: Sequence[StageSummary]) -> Sustained | None:
    """The busiest stage that keeps its limits; where none has limits, the busiest. None = there is no such stage."""
    limited = any(stage.cost and stage.cost.holds is not None for stage in stages)
    best = busiest_within(stages) if limited else max(telling(stages), key=_rps, default=None)
    if best is None or not _rps(best):
        return None
    return Sustained(
        rps=_rps(best), interval=_rate_interval(best), stage=best.name, within_limits=True if limited else None
    )


def _rate_interval(stage: StageSummary) -> Interval | None:
    """Of its requests a second, from that of the price of one."""
    ends = stage.cost.per_request_interval if stage.cost else None
    if stage.cost is None or ends is None or not ends.low or not ends.high:
        return None
    return turned(ends, stage.cost.price_per_hour)  # a price of one per rate is a rate per price of one


def _rps(stage: StageSummary) -> float:
    return stage.request_throughput or 0.0


def nearest(stages: Sequence[StageSummary], rps: float) -> StageSummary | None:
    """The stage whose answers came at a rate that is nearest to one, as a ratio."""
    answered = [stage for stage in stages if _rps(stage)]
    return min(answered, key=lambda stage: max(_rps(stage) / rps, rps / _rps(stage)), default=None)


def economy_of(
    stages: Sequence[StageSummary], price: Price, sustained: Sustained | None, ready_s: float | None = None
) -> Economy | None:
    """Of stages with their costs; ``ready_s`` is how long an engine took to start. None where nothing has a price."""
    stage = nearest(stages, sustained.rps) if sustained else None
    if sustained is None or stage is None or stage.cost is None:
        return None
    per_hour = stage.cost.price_per_hour
    usage = price.usage
    cold_start_s = usage.cold_start_s if usage and usage.cold_start_s is not None else ready_s
    day = _day(usage, sustained, _calmest_s(stages), cold_start_s) if usage else None
    return Economy(
        price_per_hour=per_hour,
        sustained=sustained,
        break_even=_break_even(stage, price, per_hour, sustained),
        day=day,
        cold_start_s=cold_start_s,
        always_on_per_day=per_hour * _HOURS_A_DAY,
        idle_per_day=per_hour * max(0.0, _HOURS_A_DAY - day.requests / sustained.rps / HOUR_S) if day else None,
        scaled_per_day=per_hour * day.up_s / HOUR_S if day else None,
    )


def _break_even(stage: StageSummary, price: Price, per_hour: float, sustained: Sustained) -> BreakEven | None:
    mix = mix_of(stage, price.against) if price.against else None
    return break_even(mix, price.against, per_hour, sustained) if mix and price.against else None


def _calmest_s(stages: Sequence[StageSummary]) -> float | None:
    """How long an answer takes where the load is smallest: a machine that may be given back is seldom busy."""
    told = [(_rps(stage), stage.e2el.mean) for stage in stages if _rps(stage) and stage.e2el.mean is not None]
    return min(told)[1] / 1000 if told else None


def _day(usage: Usage, sustained: Sustained, service_s: float | None, cold_start_s: float | None) -> Day | None:
    if service_s is None or cold_start_s is None:
        return None
    busy_s = min(usage.busy_hours * HOUR_S, DAY_S)
    requests = usage.requests_per_day if usage.requests_per_day is not None else sustained.rps * busy_s
    demand = Demand(
        requests=requests,
        busy_s=busy_s,
        service_s=service_s,
        timeout_s=usage.idle_timeout_s,
        cold_start_s=cold_start_s,
    )
    return by_gaps(usage.gaps_s, demand) if usage.gaps_s else scaled_to_zero(demand)
