"""What tokens cost, from the price of an hour of the machine and what it put through. Currency is the user's.

The whole price is laid on the output, and once more on the input: two ways to say one bill, never to be added. Tokens
of failed requests cost and count for nothing.
"""

from collections.abc import Iterable, Mapping

import msgspec

from withstand.metrics.breakeven import mix_of, per_request, times_cheaper
from withstand.metrics.rates import good_share, per_second
from withstand.metrics.summary import Interval, StageCost, StageSummary
from withstand.spec import Price

_SECONDS_PER_HOUR = 3600
_MILLION = 1e6


def per_one(price_per_hour: float, per_s: float | None) -> float | None:
    """The price of one of what is done so often a second."""
    return price_per_hour / (per_s * _SECONDS_PER_HOUR) if per_s else None


def per_million(price_per_hour: float, tokens_per_s: float | None) -> float | None:
    """The price of a million tokens at this pace."""
    one = per_one(price_per_hour, tokens_per_s)
    return None if one is None else one * _MILLION


def turned(rate: Interval | None, price_per_hour: float) -> Interval | None:
    """The interval of the price of one: the more is done the lower is its price, and the ends change places."""
    return rate and Interval(low=per_one(price_per_hour, rate.high), high=per_one(price_per_hour, rate.low))


def turned_million(rate: Interval | None, price_per_hour: float) -> Interval | None:
    """That of a million."""
    return rate and Interval(low=per_million(price_per_hour, rate.high), high=per_million(price_per_hour, rate.low))


def priced(
    stage: StageSummary, price: Price, share: float = 1.0, rates: Mapping[str, Interval | None] | None = None
) -> StageSummary:
    """The stage with its cost; ``share`` is that of good requests which its limits ask for. No price, no cost.

    ``rates`` says how sure its throughputs are, by their names.
    """
    sure = rates or {}
    per_hour = price.hour(stage.server.gpus if stage.server else None)
    if per_hour is None:
        return stage
    cost = _cost(stage, per_hour, share)
    known = {
        "gpus": round(per_hour / price.per_gpu_hour) if price.per_gpu_hour else None,
        "per_million_output_interval": turned_million(sure.get("output_throughput"), per_hour),
        "per_request_interval": turned(sure.get("request_throughput"), per_hour),
        "power_per_million_output": _power(stage, price),
    }
    return msgspec.structs.replace(
        stage, cost=msgspec.structs.replace(cost, **known, **_elsewhere(stage, price, per_hour))
    )


def _cost(stage: StageSummary, price_per_hour: float, share: float) -> StageCost:
    good = good_share(stage) if stage.request_goodput is not None else None
    return StageCost(
        price_per_hour=price_per_hour,
        per_million_input=per_million(price_per_hour, per_second(stage.total_input_tokens, stage.duration_s)),
        per_million_output=per_million(price_per_hour, stage.output_throughput),
        per_request=per_one(price_per_hour, stage.request_throughput),
        good_share=good,
        holds=None if good is None else good >= share,
        per_million_good_output=per_million(price_per_hour, stage.output_goodput),
    )


def _power(stage: StageSummary, price: Price) -> float | None:
    kwh = stage.energy.kwh_per_million_output if stage.energy else None
    return None if kwh is None or price.per_kwh is None else kwh * price.per_kwh


def _elsewhere(stage: StageSummary, price: Price, per_hour: float) -> dict[str, float]:
    mix = mix_of(stage, price.against) if price.against else None
    if mix is None or price.against is None or not stage.request_throughput:
        return {}
    elsewhere = per_request(mix, price.against)
    return {
        "elsewhere_per_request": elsewhere,
        "times_cheaper": times_cheaper(stage.request_throughput, per_hour, elsewhere),
    }


def busiest_within(stages: Iterable[StageSummary]) -> StageSummary | None:
    """Of the stages whose limits hold the one with the most requests a second; None = there is none."""
    holding = [s for s in stages if s.cost and s.cost.holds and s.request_throughput is not None]
    return max(holding, key=lambda stage: stage.request_throughput or 0.0, default=None)
