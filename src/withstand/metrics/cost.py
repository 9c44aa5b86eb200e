"""What tokens cost, from the price of an hour of the machine and what it put through. Currency is the user's.

The whole price is laid on the output, and once more on the input: two ways to say one bill, never to be added. Tokens
of failed requests cost and count for nothing.
"""

from collections.abc import Sequence

import msgspec

from withstand.metrics.rates import good_share, per_second
from withstand.metrics.summary import StageSummary

_SECONDS_PER_HOUR = 3600
_MILLION = 1e6


class StageCost(msgspec.Struct, frozen=True, kw_only=True):
    """One stage's price of a million tokens; None = its tokens are not known."""

    stage: str
    request_throughput: float | None
    per_million_input: float | None
    per_million_output: float | None
    good_share: float | None
    """Of the requests that kept the limits; None without limits."""
    holds: bool | None
    """Whether that share is as large as was asked."""


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """Of a run."""

    price_per_hour: float
    stages: tuple[StageCost, ...]
    within_slo: int | None
    """Index of the stage with the most requests a second among those whose limits hold; None = there is none."""


def per_million(price_per_hour: float, tokens_per_s: float | None) -> float | None:
    """The price of a million tokens at this pace."""
    return price_per_hour / (tokens_per_s * _SECONDS_PER_HOUR) * _MILLION if tokens_per_s else None


def costs(stages: Sequence[StageSummary], price_per_hour: float, share: float) -> Costs:
    """Every stage, and the one that the limits allow; ``share`` is that of good requests which they ask for."""
    priced = tuple(_priced(stage, price_per_hour, share) for stage in stages)
    holding = [i for i, stage in enumerate(priced) if stage.holds and stage.request_throughput is not None]
    best = max(holding, key=lambda i: priced[i].request_throughput or 0.0, default=None)
    return Costs(price_per_hour=price_per_hour, stages=priced, within_slo=best)


def _priced(stage: StageSummary, price_per_hour: float, share: float) -> StageCost:
    input_rate = per_second(stage.total_input_tokens, stage.duration_s)
    good = good_share(stage) if stage.request_goodput is not None else None
    return StageCost(
        stage=stage.name,
        request_throughput=stage.request_throughput,
        per_million_input=per_million(price_per_hour, input_rate),
        per_million_output=per_million(price_per_hour, stage.output_throughput),
        good_share=good,
        holds=None if good is None else good >= share,
    )
