"""What the hop costs: the path against the engine itself, asked in pairs, in turn."""

from collections.abc import Sequence
from statistics import median

import msgspec

from withstand.doctor.finding import Fact, Finding, Question
from withstand.metrics.quantiles import interval_ranks

TTFT = Question("hop.ttft", "Added to TTFT")
ITL = Question("hop.itl", "Added to ITL")
PAIRS_MIN = 6
"""Fewer do not bound a median on both sides."""
_NAGLE_MS = (33.0, 50.0)
"""The wait of a delayed acknowledgement is 40 ms on Linux."""
_FELT_MS, _FELT_SHARE = 5.0, 0.05
_FASTER_MS, _FASTER_SHARE = 0.5, 0.2


class Added(msgspec.Struct, frozen=True):
    """Of differences of pairs, in ms. The interval is the median's: 95 %, from order statistics."""

    pairs: int
    p50_ms: float
    low_ms: float | None
    high_ms: float | None
    p99_ms: float
    """Linear between neighbours, as everywhere; of few pairs it is nearly the largest."""
    direct_ms: float
    """The engine's own, at the median."""


def added(path_ms: Sequence[float], direct_ms: Sequence[float]) -> Added | None:
    """From the two sides of each pair; None = too few pairs."""
    differences = sorted(a - b for a, b in zip(path_ms, direct_ms, strict=True))
    n = len(differences)
    if n < PAIRS_MIN:
        return None
    low, high = interval_ranks(n, 0.5)
    place = (n - 1) * 0.99
    rank = int(place)
    beyond = differences[min(rank + 1, n - 1)]
    return Added(
        pairs=n,
        p50_ms=median(differences),
        low_ms=None if low is None else differences[low],
        high_ms=None if high is None else differences[high],
        p99_ms=differences[rank] + (beyond - differences[rank]) * (place - rank),
        direct_ms=median(direct_ms),
    )


def judge_hop(ttft: Added | None, itl: Added | None) -> list[Finding]:
    """What is added to the first token, and to each further one."""
    if ttft is None or itl is None:
        few = f"fewer than {PAIRS_MIN} pairs of good answers"
        return [question.not_tried(few, "Ask for more by --pairs.") for question in (TTFT, ITL)]
    return [_judge(TTFT, ttft, _ttft_cure(ttft, itl)), _judge(ITL, itl, _SLOW)]


def _held_back(itl: Added) -> bool:
    """Tokens cannot come faster than the engine says them, unless they have waited."""
    return itl.high_ms is not None and itl.high_ms < -max(_FASTER_MS, _FASTER_SHARE * itl.direct_ms)


_SLOW = "Look at what the hop does for each chunk, and at how busy its core is."


def _ttft_cure(ttft: Added, itl: Added) -> str:
    low, high = _NAGLE_MS
    if low <= ttft.p50_ms <= high and itl.p50_ms < _FELT_MS:
        return "40 ms at the first token alone are a delayed acknowledgement: have the hop set TCP_NODELAY."
    return "Look at what the hop does before it asks the engine, and whether it holds the first token back."


def _judge(question: Question, seen: Added, cure: str) -> Finding:
    facts: dict[str, Fact] = msgspec.to_builtins(seen)
    interval = f"{_shown(seen.low_ms)} to {_shown(seen.high_ms)}"
    said = f"{_shown(seen.p50_ms)} ms at p50 ({interval}), {_shown(seen.p99_ms)} at p99, of {seen.pairs} pairs"
    if question is ITL and _held_back(seen):
        cure = "Tokens were held back and come together, which TTFT pays for: see how the path streams."
        return question.doubt(f"{said}: faster than the engine, {_shown(seen.direct_ms)}", cure, **facts)
    sure_ms = seen.low_ms if seen.low_ms is not None else seen.p50_ms
    if sure_ms > max(_FELT_MS, _FELT_SHARE * seen.direct_ms):
        return question.doubt(f"{said}; the engine's own is {_shown(seen.direct_ms)}", cure, **facts)
    return question.ok(said, **facts)


def _shown(value_ms: float | None) -> str:
    if value_ms is None:
        return "?"
    return f"{value_ms:z.2f}" if abs(value_ms) < 10 else f"{value_ms:.0f}"
