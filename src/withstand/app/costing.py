"""What a run costs: its stages priced, and what they mean for a bill."""

from collections.abc import Sequence

from withstand.compare.courses import rates_of
from withstand.control.limit import Limit
from withstand.control.search import Axis
from withstand.metrics.cost import priced
from withstand.metrics.economy import economy_of, largest_seen
from withstand.metrics.fold import StageFold
from withstand.metrics.summary import ColdStart, Economy, StageSummary, Sustained
from withstand.runs import Manifest
from withstand.spec import Plan, Price, over


class Costing:
    """The plan's price, with what was told since laid over it."""

    def __init__(self, told: Price | None = None) -> None:
        self._told = told

    def price_of(self, plan: Plan) -> Price:
        """What counts for a run of this plan."""
        return over(self._told, plan.asked_price)

    def stage(self, summary: StageSummary, fold: StageFold, plan: Plan) -> StageSummary:
        """With its cost, and how sure that is."""
        rates = {name: rate.interval for name, rate in rates_of(fold.flow, summary).items()}
        return priced(summary, self.price_of(plan), plan.goodput.share, rates)

    def run(
        self, stages: Sequence[StageSummary], manifest: Manifest, limit: Limit | None, cold: ColdStart | None = None
    ) -> Economy | None:
        """Of a run whose stages are priced; what a cold start was seen to cost stands for the engine's own time."""
        sustained = _promised(stages, limit) if limit else largest_seen(stages)
        seen_s = cold.extra / 1000 if cold and cold.extra is not None and cold.extra > 0 else manifest.engine_ready_s
        return economy_of(stages, self.price_of(manifest.plan), sustained, seen_s)


def _promised(stages: Sequence[StageSummary], limit: Limit) -> Sustained | None:
    """By a search: the limit itself, or what was answered at the most users at a time that it allows."""
    low = limit.interval.low
    load = limit.load if limit.load is not None else low
    if low is None or load is None:
        return None
    if limit.axis is Axis.RATE:
        return Sustained(rps=load, interval=limit.interval, stage=None, within_limits=True)
    at = [stage for stage in stages if stage.load.max_concurrency == low and stage.request_throughput]
    return Sustained(rps=at[-1].request_throughput or 0.0, stage=at[-1].name, within_limits=True) if at else None
