"""What a client said, held against what the truth server wrote. Pure: a log and a report in, findings out.

Generous, so that only a client's idea of things can be wrong, not this machine's mood: a time may be off by a fifth or
by ``OFF_MS``, medians stand for latencies, and where several definitions are in use each of them is right. Counts are
exact.
"""

import statistics
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import msgspec
from benchmarks.peers.client import Said

from withstand.testing import Right as RightAnswer
from withstand.testing import Served, expected

COUNTS: Final = ("completed", "failed", "tokens")
OFF_SHARE: Final = 0.2
OFF_MS: Final = 5.0
_TOGETHER_MS: Final = 0.1
"""Events so close are one arrival to most clients."""

Values = tuple[float, ...]
"""Several = each is right by some definition; none = there is nothing to be said."""

Judged = tuple[Served, RightAnswer]


class Right(msgspec.Struct, frozen=True, kw_only=True):
    """The right values of one run."""

    completed: Values
    failed: Values
    output_tokens: Values
    ttft_ms: Values = ()
    itl_mean_ms: Values = ()
    itl_p99_ms: Values = ()
    """Only of a trial with a tail: elsewhere it would be this machine's."""
    tpot_ms: Values = ()
    e2el_ms: Values = ()


class Finding(msgspec.Struct, frozen=True):
    """One number that is wrong."""

    what: str
    said: float
    right: Values

    def __str__(self) -> str:
        right = " or ".join(dict.fromkeys(f"{value:.0f}" for value in self.right)) or "none"
        return f"{self.what} {self.said:.0f} ({right})"


def right_of(log: list[Served], requests: int | None, *, tail: bool = False) -> Right:
    """The right values of what was served.

    An answer that the client broke off was one to complete. ``requests`` None = the client sends as many as it likes,
    and breaks off what is open at its end: of those it may count any.
    """
    pairs = [(served, expected(served.behaviour or "plain", served)) for served in log]
    good = sorted((pair for pair in pairs if pair[1].success), key=lambda pair: not _is_whole(pair[0]))
    whole = [served for served, _ in good if _is_whole(served)]
    streamed = [served for served in whole if served.streamed]
    least = len(whole) if requests is None else len(good)
    completed = range(least, min(requests or len(log), len(good) + _either(pairs)) + 1)
    return Right(
        completed=tuple(completed),
        failed=_failed(pairs) if requests is None else tuple(requests - count for count in completed),
        output_tokens=_tokens(good, least),
        ttft_ms=_median(served.ttft_ms for served in streamed),
        e2el_ms=_median(served.e2el_ms for served in whole),
        **_gaps(streamed, tail=tail),
    )


def _is_whole(served: Served) -> bool:
    return served.done_ns is not None and served.aborted_ns is None


def _either(pairs: list[Judged]) -> int:
    return sum(right.success is None for _, right in pairs)


def _failed(pairs: list[Judged]) -> Values:
    bad = [served for served, right in pairs if right.success is False]
    broken_off = sum(served.aborted_ns is not None for served in bad)
    return tuple(range(len(bad) - broken_off, len(bad) + _either(pairs) + 1))


def _tokens(good: list[Judged], least: int) -> Values:
    """Of so many answers at least: as the server claims them, and as it wrote them."""
    values: list[float] = []
    for count in range(least, len(good) + 1):
        values.append(sum(right.output_tokens or 0 for _, right in good[:count]))
        values.append(sum(served.tokens_planned or 0 for served, _ in good[:count]))
    return tuple(dict.fromkeys(values))


def _median(values: Iterable[float | None]) -> Values:
    known = [value for value in values if value is not None]
    return (statistics.median(known),) if known else ()


def _gaps(streamed: list[Served], *, tail: bool) -> dict[str, Values]:
    """ITL and TPOT by the definitions in use: by event, by event that came alone, by token."""
    gaps = [(b - a) / 1e6 for served in streamed for a, b in pairwise(served.event_ns)]
    if not gaps:
        return {}
    apart = [gap for gap in gaps if gap > _TOGETHER_MS] or gaps
    by_token = [(served.token_ns[-1] - served.token_ns[0]) / 1e6 for served in streamed]
    after_first = sum(sum(at_ns > served.token_ns[0] for at_ns in served.token_ns) for served in streamed)
    written, claimed = (sum(served.tokens - 1 for served in streamed), sum(map(_claimed_after_first, streamed)))
    per_token = tuple(sum(by_token) / tokens for tokens in (written, after_first, claimed))
    return {
        "itl_mean_ms": (statistics.fmean(gaps), statistics.fmean(apart), *per_token),
        "itl_p99_ms": (_p99(gaps), _p99(apart)) if tail else (),
        "tpot_ms": per_token,
    }


def _claimed_after_first(served: Served) -> int:
    claimed = served.tokens if served.usage_planned is None else served.usage_planned
    return max(1, claimed - 1)


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98] if len(values) > 1 else values[0]


def findings(said: Said, right: Right) -> list[Finding]:
    """Every number that the client states and that is wrong."""
    return [*_counts(said, right), *_times(said, right)]


def _counts(said: Said, right: Right) -> Iterator[Finding]:
    values = (said.completed, said.failed, said.output_tokens)
    for what, value, wanted in zip(COUNTS, values, (right.completed, right.failed, right.output_tokens), strict=True):
        if value is not None and value not in wanted:
            yield Finding(what, value, wanted)


def _times(said: Said, right: Right) -> Iterator[Finding]:
    triples = (
        ("TTFT", said.ttft_ms.p50, right.ttft_ms),
        ("ITL", said.itl_ms.mean, right.itl_mean_ms),
        ("ITL p99", said.itl_ms.p99 if right.itl_p99_ms else None, right.itl_p99_ms),
        ("TPOT", said.tpot_ms.mean, right.tpot_ms),
        ("E2EL", said.e2el_ms.p50, right.e2el_ms),
    )
    for what, value, wanted in triples:
        if value is not None and not any(_near(value, each) for each in wanted):
            yield Finding(what, value, wanted)


def _near(value: float, right: float) -> bool:
    return abs(value - right) <= max(OFF_MS, OFF_SHARE * right)


def gravest(found: Iterable[Finding]) -> list[Finding]:
    """Without what only follows: who takes the wrong answers for good has wrong tokens and times as well."""
    ordered = list(found)
    return [finding for finding in ordered if finding.what == "completed"] or ordered


def says_something(said: Said) -> bool:
    """Whether there is a time in it at all."""
    return any(spread.p50 is not None for spread in (said.ttft_ms, said.itl_ms, said.tpot_ms, said.e2el_ms))
