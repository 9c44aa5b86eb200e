"""Whose machine is cheaper than tokens by the million, at the load where it answers most, and from which load on."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from withstand.compare.costs import is_doubted
from withstand.compare.shape import Comparison, Decision, Objection, Volume
from withstand.metrics.breakeven import Mix, break_even, in_words
from withstand.metrics.summary import BreakEven, Sustained
from withstand.spec import TokenPrice

_METRIC = "request_throughput"


class _Side(msgspec.Struct, frozen=True):
    """One side at its best load."""

    label: str
    at: Sustained
    found: BreakEven
    doubted: bool


def token_decision(comparison: Comparison, prices: Mapping[str, float], elsewhere: TokenPrice) -> Decision | None:
    """None where no side has a price, a rate and tokens."""
    told = [
        _told(comparison, i, prices[s.label], elsewhere) for i, s in enumerate(comparison.sides) if s.label in prices
    ]
    sides = sorted((side for side in told if side), key=lambda side: -side.found.times_cheaper)
    if not sides:
        return None
    return Decision(
        wins_for="cheaper than tokens",
        winner=sides[0].label if _wins(sides) else None,
        evidence=f"Against {elsewhere.input:g} and {elsewhere.output:g}: {'; '.join(map(_in_words, sides))}.",
        against=tuple(map(Objection, _why_not(sides))),
    )


def _told(comparison: Comparison, side: int, per_hour: float, elsewhere: TokenPrice) -> _Side | None:
    """At its most answers a second."""
    seen = [
        (value, row, group)
        for group in comparison.groups
        for row in group.rows
        if row.metric == _METRIC and (value := row.cells[side].value) and group.volumes
    ]
    if not seen:
        return None
    value, row, group = max(seen, key=lambda one: one[0])
    at = Sustained(rps=value, interval=row.cells[side].interval, stage=group.label, within_limits=None)
    mix = _mix(group.volumes[side])
    found = break_even(mix, elsewhere, per_hour, at) if mix else None
    return _Side(comparison.sides[side].label, at, found, is_doubted(row)) if found else None


def _mix(volume: Volume) -> Mix | None:
    if not volume.completed or volume.input_tokens is None or volume.output_tokens is None:
        return None
    return Mix(volume.input_tokens / volume.completed, volume.output_tokens / volume.completed)


def _wins(sides: Sequence[_Side]) -> bool:
    """It is shown to be cheaper than tokens, and than every other machine."""
    first, *others = (side.found.times_interval for side in sides)
    if first is None or first.low is None or first.low <= 1 or any(side.doubted for side in sides):
        return False
    return all(end is not None and end.high is not None and end.high < first.low for end in others)


def _in_words(side: _Side) -> str:
    """``a 2.1 times cheaper at 9 req/s, from 4.3 req/s on``; one that is dearer never is, at what was seen."""
    found = side.found
    since = f"from {found.rate_rps:.3g} req/s on" if found.utilisation <= 1 else "never cheaper at what was seen"
    return f"{side.label} {in_words(found.times_cheaper)} at {side.at.stage}, {since}"


def _why_not(sides: Sequence[_Side]) -> Iterator[str]:
    yield "Each at the load where it answers most, whatever its latency is there"
    if any(side.found.times_interval is None for side in sides):
        yield "How far chance moves these rates is not known"
    if any(side.doubted for side in sides):
        yield "The comparison draws no verdict from these rates"
