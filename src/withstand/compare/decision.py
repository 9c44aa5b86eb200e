"""What is best for what: a table computed from a comparison, never written by hand. ``Nothing`` is an answer.

A side wins a purpose where the comparison shows it ahead of every other at one load at least, and no other side ahead
at any. A number that is only larger wins nothing: it is told as evidence, and why it is not enough as the doubt.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from withstand.compare.costs import cost_decision
from withstand.compare.elsewhere import token_decision
from withstand.compare.shape import Cell, Comparison, Decision, Group, Objection, Row, Verdict
from withstand.compare.trust import is_other_work
from withstand.interop.checks.words import said
from withstand.metrics.doubts import Doubt
from withstand.spec import TokenPrice

_PURPOSES = (
    ("lowest TTFT", ("ttft.p50", "ttft.mean")),
    ("lowest TPOT", ("tpot.p50", "tpot.mean")),
    ("steady stream", ("itl.p99", "itl.p90")),
    ("whole answer", ("e2el.p50", "e2el.mean")),
    ("throughput", ("output_throughput", "request_throughput")),
    ("within limits", ("request_goodput",)),
    ("tail", ("ttft.p99", "e2el.p99", "ttft.p90", "e2el.p90")),
    ("success", ("success_rate",)),
)
_SHARE_UNIT = "share"
_PERCENT = 100.0
_PLACES_MAX = 3


class _Seen(msgspec.Struct, frozen=True):
    """One row for a purpose, and who is shown to be ahead in it; None = nobody is."""

    group: Group
    row: Row
    winner: int | None


def decide(
    comparison: Comparison, prices: Mapping[str, float] | None = None, elsewhere: TokenPrice | None = None
) -> tuple[Decision, ...]:
    """A line for each purpose that any number tells of; ``prices`` are of an hour, by label."""
    lines = [_decided(comparison, purpose, keys) for purpose, keys in _PURPOSES]
    if prices:
        lines.append(cost_decision(comparison, prices))
    if prices and elsewhere:
        lines.append(token_decision(comparison, prices, elsewhere))
    return tuple(line for line in lines if line)


def _decided(comparison: Comparison, purpose: str, keys: Sequence[str]) -> Decision | None:
    seen = _seen(comparison, keys)
    if not seen:
        return None
    winners = Counter(one.winner for one in seen if one.winner is not None)
    labels = [side.label for side in comparison.sides]
    if len(winners) == 1:
        winner = next(iter(winners))
        return Decision(
            wins_for=purpose,
            winner=labels[winner],
            evidence=_shown([one for one in seen if one.winner == winner], labels, of=len(seen)),
            against=tuple(_against(comparison, seen)),
        )
    evidence = "; ".join(_split(seen, labels)) if winners else _nobody(seen, labels)
    return Decision(wins_for=purpose, winner=None, evidence=evidence, against=tuple(_against(comparison, seen)))


def _seen(comparison: Comparison, keys: Sequence[str]) -> list[_Seen]:
    """The rows of the first key that there is."""
    for key in keys:
        rows = [(group, row) for group in comparison.groups for row in group.rows if row.metric == key]
        if rows:
            return [_Seen(group, row, _ahead_of_all(row)) for group, row in rows]
    return []


def _ahead_of_all(row: Row) -> int | None:
    leader = row.fastest
    if leader is None:
        return None
    others = [side for side in range(len(row.cells)) if side != leader]
    return leader if all(_is_ahead(row, leader, other) for other in others) else None


def _is_ahead(row: Row, leader: int, other: int) -> bool:
    """By the verdicts against the baseline; between two others, by intervals that do not touch."""
    led, left = row.differences[leader], row.differences[other]
    if left is None:
        return led is not None and led.verdict is Verdict.BETTER
    if led is None:
        return left.verdict is Verdict.WORSE
    known = Verdict.UNKNOWN not in {led.verdict, left.verdict}
    slow_client = any(d.own_error_percent for d in row.differences if d)  # the cells' own intervals hold nothing of it
    return known and not slow_client and _apart(row.cells[leader], row.cells[other])


def _apart(one: Cell, other: Cell) -> bool:
    if one.interval is None or other.interval is None:
        return False
    a, b = one.interval, other.interval
    below = a.high is not None and b.low is not None and a.high < b.low
    above = a.low is not None and b.high is not None and a.low > b.high
    return below or above


def _shown(won: Sequence[_Seen], labels: Sequence[str], *, of: int) -> str:
    """The load to quote, and at how many the lead is shown."""
    best = max(won, key=_quotable)
    where = f"; shown at {len(won)} of {of} loads" if of > 1 else ""
    return f"{_told(best, labels)}{where}"


def _told(one: _Seen, labels: Sequence[str]) -> str:
    """``Median TTFT at 5 req/s: vllm 44.6 ms, sgl 51.2 ms``."""
    values = [f"{label} {_value(one.row, cell)}" for label, cell in zip(labels, one.row.cells, strict=True)]
    return f"{one.row.title} at {one.group.label}: {', '.join(values)}"


def _value(row: Row, cell: Cell) -> str:
    if cell.value is None:
        return "not told"
    if row.unit == _SHARE_UNIT:
        return f"{said(_PERCENT * cell.value)} %"
    return f"{said(cell.value)} {row.unit}"


def _split(seen: Sequence[_Seen], labels: Sequence[str]) -> Iterator[str]:
    """It depends on the load: for each side one at which it wins."""
    for side in sorted({one.winner for one in seen if one.winner is not None}):
        won = [one for one in seen if one.winner == side]
        yield f"{labels[side]} is ahead: {_shown(won, labels, of=len(seen))}"


def _nobody(seen: Sequence[_Seen], labels: Sequence[str]) -> str:
    leads = Counter(one.row.fastest for one in seen if one.row.fastest is not None)
    if not leads:
        other = any(is_other_work(one.row.because) for one in seen)
        why = "The sides did not do the same work" if other else "All values are equal, or one is missing"
        return f"{why}: {_told(min(seen, key=_lowest), labels)}."
    side, times = leads.most_common(1)[0]
    best = max((one for one in seen if one.row.fastest == side), key=_quotable)
    return f"{labels[side]} has the better number at {times} of {len(seen)} loads, not shown to be more: " + _told(
        best, labels
    )


def _quotable(one: _Seen) -> tuple[bool, float]:
    """The larger the lead the better; but first of all one that no doubt strikes."""
    return not one.row.because, one.row.faster_by_percent or 0.0


def _lowest(one: _Seen) -> float:
    """The load at which a share of success has fallen says most."""
    return min((cell.value for cell in one.row.cells if cell.value is not None), default=0.0)


def _against(comparison: Comparison, seen: Sequence[_Seen]) -> Iterator[Objection]:
    """What forbids these rows a verdict, by its name and where, and what they have too little of."""
    if comparison.forced:
        yield Objection("Conditions differ; the comparison was forced")
    places: dict[str, dict[str, None]] = {}
    doubts: dict[str, dict[Doubt, None]] = {}
    for one in seen:
        for doubt in one.row.because:
            kind = doubt.kind.spoken.capitalize()
            places.setdefault(kind, {})[one.group.label] = None
            doubts.setdefault(kind, {})[doubt] = None
    for kind, where in places.items():
        yield Objection(f"{kind}{_places(list(where), of=len(seen))}", tuple(doubts[kind]))
    lacks = Counter(lack for one in seen for lack in one.row.lacks)
    for lack, _ in lacks.most_common(1):
        yield Objection(lack.partition(":")[0].rstrip("."), note=lack)


def _places(labels: Sequence[str], *, of: int) -> str:
    """Nothing where there is one load only."""
    if len(labels) == of:
        return " at all loads" if of > 1 else ""
    return f" at {', '.join(labels)}" if len(labels) <= _PLACES_MAX else f" at {len(labels)} of {of} loads"
