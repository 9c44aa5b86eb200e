"""Who makes tokens cheapest: each side at the load where it puts out most, with its throughput's interval."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from withstand.compare.shape import Comparison, Decision, Objection, Row, Verdict
from withstand.metrics.cost import per_million, turned_million
from withstand.metrics.summary import Interval

_METRIC = "output_throughput"


class _Price(msgspec.Struct, frozen=True):
    """One side's price of a million output tokens."""

    label: str
    at: str
    value: float
    interval: Interval | None
    doubted: bool
    """The comparison draws no verdict from this row."""


def cost_decision(comparison: Comparison, prices: Mapping[str, float]) -> Decision | None:
    """None where no side that has a price tells its throughput."""
    found = [_cheapest(comparison, i, prices[s.label]) for i, s in enumerate(comparison.sides) if s.label in prices]
    priced = sorted((price for price in found if price is not None), key=lambda price: price.value)
    if not priced:
        return None
    return Decision(
        wins_for="cost",
        winner=priced[0].label if _is_shown(priced) else None,
        evidence=f"A million output tokens: {', '.join(map(_told, priced))}.",
        against=tuple(map(Objection, _why_not(comparison, priced))),
    )


def _cheapest(comparison: Comparison, side: int, price_per_hour: float) -> _Price | None:
    rows = [(group, row) for group in comparison.groups for row in group.rows if row.metric == _METRIC]
    told = [(group, row, row.cells[side].value) for group, row in rows]
    known = [(group, row, value) for group, row, value in told if value]
    if not known:
        return None
    group, row, value = max(known, key=lambda item: item[2])
    cost = per_million(price_per_hour, value)
    assert cost is not None
    interval = row.cells[side].interval
    return _Price(
        label=comparison.sides[side].label,
        at=group.label,
        value=cost,
        interval=turned_million(interval, price_per_hour),
        doubted=is_doubted(row),
    )


def is_doubted(row: Row) -> bool:
    """The comparison draws no verdict from it."""
    return any(difference is not None and difference.verdict is Verdict.UNKNOWN for difference in row.differences)


def _is_shown(priced: Sequence[_Price]) -> bool:
    """The cheapest one's interval ends below where all others begin."""
    first, *others = priced
    high = first.interval.high if first.interval else None
    if high is None or not others or any(price.doubted for price in priced):
        return False
    lows = [price.interval.low if price.interval else None for price in others]
    return all(low is not None and high < low for low in lows)


def _told(price: _Price) -> str:
    ends = price.interval
    between = f" ({ends.low:.3g} to {ends.high:.3g})" if ends and ends.low and ends.high else ""
    return f"{price.label} {price.value:.3g}{between} at {price.at}"


def _why_not(comparison: Comparison, priced: Sequence[_Price]) -> Iterator[str]:
    """Each at its own best load, which may be another one; and all that keeps the order from being shown."""
    yield "Each at the load where it puts out most, whatever its latency is there"
    if len(priced) < len(comparison.sides):
        yield "Not every side has a price and a throughput"
    if any(price.interval is None for price in priced):
        yield "How far chance moves these throughputs is not known"
    if any(price.doubted for price in priced):
        yield "The comparison draws no verdict from these throughputs"
