"""From which load on tokens cost no more than was promised: the more a machine is asked, the cheaper each token is.

At a rate that is kept, tokens a second are the rate times the tokens of a request, so that the price follows from any
load. Of users at a time nobody knows beforehand what they get: their loads are tried.
"""

import math
from collections.abc import Sequence

import msgspec

from withstand.compare.estimate import between_runs, unsure
from withstand.control.probe import Standing
from withstand.control.tried import ALONE, SEARCH, Tried
from withstand.metrics.summary import Interval
from withstand.spec import LimitSearch

_PER_MILLION = 1e6 / 3600


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """The lower end of what can be promised."""

    per_million: float
    """What a million output tokens may cost."""
    load: float | None
    """None = not known."""
    interval: Interval = Interval(None, None)


def floor_of(wanted: LimitSearch, tried: Sequence[Tried]) -> Floor | None:
    """None where no price is promised."""
    if wanted.cost is None or wanted.price_per_hour is None:
        return None
    found = _of_rates(wanted, tried) if wanted.axis == "rate" else _of_users(wanted, tried)
    return Floor(per_million=wanted.cost, load=found[0], interval=found[1])


def _needed_tps(wanted: LimitSearch) -> float:
    """Output tokens a second that make them as cheap as was promised."""
    assert wanted.cost is not None
    assert wanted.price_per_hour is not None
    return wanted.price_per_hour / wanted.cost * _PER_MILLION


def _of_rates(wanted: LimitSearch, tried: Sequence[Tried]) -> tuple[float | None, Interval]:
    """By the tokens of a request, from all loads at which none was cut."""
    told = [
        unsure(one.output_tokens / one.asked, one.asked, "")
        for one in tried
        if one.output_tokens and one.asked and not (one.look and one.look.standing in {Standing.BREAKS, Standing.GROWS})
    ]
    if not told:
        return None, Interval(None, None)
    mean = between_runs(told) if len(told) > 1 else told[0]
    load = _needed_tps(wanted) / mean.value
    ends = mean.interval
    if ends is None or not ends.low or not ends.high:
        return load, Interval(load, load)
    return load, Interval(_needed_tps(wanted) / ends.high, _needed_tps(wanted) / ends.low)


def _of_users(wanted: LimitSearch, tried: Sequence[Tried]) -> tuple[float | None, Interval]:
    """Between the most that are too few and the fewest that are enough."""
    few, enough = _ends(wanted, tried)
    return (enough[0] if enough else None), Interval(few[0] if few else None, enough[0] if enough else None)


def next_users(wanted: LimitSearch, tried: Sequence[Tried]) -> float | None:
    """How many to try next for the lower end; None = it is known, or another axis has it for nothing."""
    if wanted.cost is None or wanted.price_per_hour is None or wanted.axis != "concurrency":
        return None
    few, enough = _ends(wanted, tried)
    if few is None or enough is None or enough[0] <= max(few[0] + 1, few[0] * (1 + wanted.precision)):
        return None
    middle = float(round(math.sqrt(few[0] * enough[0])))
    return middle if few[0] < middle < enough[0] and middle not in {one.load for one in tried} else None


_Point = tuple[float, float]


def _ends(wanted: LimitSearch, tried: Sequence[Tried]) -> tuple[_Point | None, _Point | None]:
    """(The most users that are too few, the fewest that are enough), each with its tokens a second."""
    points = sorted(
        (one.load, one.output_throughput)
        for one in tried
        if one.stage.phase in {ALONE, SEARCH} and one.output_throughput and not (one.look and one.look.doubt)
    )
    enough = next((point for point in points if point[1] >= _needed_tps(wanted)), None)
    below = [point for point in points if enough is None or point[0] < enough[0]]
    return (below[-1] if below else None), enough
