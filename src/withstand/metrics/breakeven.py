"""A machine by the hour against tokens by the million: from which load on the machine is cheaper. Pure.

A request of the measured mix costs elsewhere ``p = (input * IN + cached input * CACHED + output * OUT) / 10^6``, input
being what is not cached; the machine costs ``H`` an hour whatever it does. They cost the same at ``H / (3600 p)``
requests a second. At another rate the machine is ``rate * 3600 p / H`` times cheaper, below 1 dearer.
"""

import msgspec

from withstand.metrics.summary import BreakEven, Interval, StageSummary, Sustained
from withstand.spec import TokenPrice

_MILLION = 1e6
_HOUR_S, _DAY_S = 3600, 86_400


class Mix(msgspec.Struct, frozen=True):
    """The tokens of a request, on average over the answers."""

    input_tokens: float
    output_tokens: float
    cached_share: float = 0.0
    """Of the input, by the server's prefix cache."""


def mix_of(stage: StageSummary, price: TokenPrice) -> Mix | None:
    """None where its tokens are not known. Cached input counts as such only where it has a price of its own."""
    if not stage.completed or stage.total_input_tokens is None or stage.total_output_tokens is None:
        return None
    cached = _cached_share(stage) if price.cached_input is not None else None
    return Mix(stage.total_input_tokens / stage.completed, stage.total_output_tokens / stage.completed, cached or 0.0)


def _cached_share(stage: StageSummary) -> float | None:
    """By the answers' own accounts, or else by the server's counters."""
    told = stage.ledger.cached if stage.ledger else None
    if told and told.answers == stage.completed and stage.total_input_tokens:
        return min(1.0, told.tokens / stage.total_input_tokens)
    return stage.server.prefix_share if stage.server else None


def per_request(mix: Mix, price: TokenPrice) -> float:
    """What a request costs elsewhere."""
    cached = mix.input_tokens * mix.cached_share
    dearest = price.input if price.cached_input is None else price.cached_input
    return ((mix.input_tokens - cached) * price.input + cached * dearest + mix.output_tokens * price.output) / _MILLION


def times_cheaper(rps: float, per_hour: float, elsewhere: float) -> float:
    """The bill elsewhere by the machine's, at a rate."""
    return rps * _HOUR_S * elsewhere / per_hour


def break_even(mix: Mix, price: TokenPrice, per_hour: float, largest: Sustained) -> BreakEven | None:
    """None where a request of this mix costs nothing elsewhere, or nothing was answered."""
    elsewhere = per_request(mix, price)
    if elsewhere <= 0 or largest.rps <= 0:
        return None
    rate = per_hour / _HOUR_S / elsewhere
    return BreakEven(
        elsewhere_per_request=elsewhere,
        rate_rps=rate,
        input_tokens_per_day=rate * _DAY_S * mix.input_tokens,
        output_tokens_per_day=rate * _DAY_S * mix.output_tokens,
        utilisation=rate / largest.rps,
        times_cheaper=times_cheaper(largest.rps, per_hour, elsewhere),
        times_interval=_times(largest.interval, per_hour, elsewhere),
        cached_share=mix.cached_share,
    )


def _times(rates: Interval | None, per_hour: float, elsewhere: float) -> Interval | None:
    if rates is None:
        return None
    low, high = (None if end is None else times_cheaper(end, per_hour, elsewhere) for end in (rates.low, rates.high))
    return Interval(low, high)


def in_words(times: float) -> str:
    """``2.1 times cheaper``, ``1.4 times dearer``."""
    return f"{times:.3g} times cheaper" if times >= 1 else f"{1 / times:.3g} times dearer"
