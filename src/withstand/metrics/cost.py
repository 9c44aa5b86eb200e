"""What tokens cost, from the price of an hour of the machine and what it put through. Currency is the user's.

The whole price is laid on the output, and once more on the input: two ways to say one bill, never to be added. Tokens
of failed requests cost and count for nothing.
"""

from collections.abc import Iterable

import msgspec

from withstand.metrics.rates import good_share, per_second
from withstand.metrics.summary import StageCost, StageSummary

_SECONDS_PER_HOUR = 3600
_MILLION = 1e6


def per_million(price_per_hour: float, tokens_per_s: float | None) -> float | None:
    """The price of a million tokens at this pace."""
    return price_per_hour / (tokens_per_s * _SECONDS_PER_HOUR) * _MILLION if tokens_per_s else None


def priced(stage: StageSummary, price_per_hour: float | None, share: float) -> StageSummary:
    """The stage with its cost; ``share`` is that of good requests which its limits ask for. No price, no cost."""
    return stage if price_per_hour is None else msgspec.structs.replace(stage, cost=_cost(stage, price_per_hour, share))


def _cost(stage: StageSummary, price_per_hour: float, share: float) -> StageCost:
    good = good_share(stage) if stage.request_goodput is not None else None
    return StageCost(
        price_per_hour=price_per_hour,
        per_million_input=per_million(price_per_hour, per_second(stage.total_input_tokens, stage.duration_s)),
        per_million_output=per_million(price_per_hour, stage.output_throughput),
        good_share=good,
        holds=None if good is None else good >= share,
    )


def busiest_within(stages: Iterable[StageSummary]) -> StageSummary | None:
    """Of the stages whose limits hold the one with the most requests a second; None = there is none."""
    holding = [s for s in stages if s.cost and s.cost.holds and s.request_throughput is not None]
    return max(holding, key=lambda stage: stage.request_throughput or 0.0, default=None)
