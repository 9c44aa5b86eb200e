"""What a client said, held against what the truth server wrote. Pure: a log and a report in, findings out.

Generous, so that only a client's idea of things can be wrong, not this machine's mood: a time may be off by a fifth or
by ``OFF_MS``, medians stand for latencies, and where several definitions of a gap are in use each of them is right.
Counts are exact.
"""

import statistics
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import msgspec
from benchmarks.peers.client import Said

from withstand.record import Status
from withstand.testing.truth.behaviours import BEHAVIOURS
from withstand.testing.truth.served import Served

COUNTS: Final = ("completed", "failed", "tokens")
OFF_SHARE: Final = 0.2
OFF_MS: Final = 5.0


class Right(msgspec.Struct, frozen=True, kw_only=True):
    """The right values. An empty tuple = there is nothing to be said; several = each is right by some definition."""

    completed: int
    failed: int
    output_tokens: int
    ttft_ms: tuple[float, ...] = ()
    itl_mean_ms: tuple[float, ...] = ()
    itl_p99_ms: tuple[float, ...] = ()
    """Only of a trial with a tail: elsewhere it would be this machine's."""
    tpot_ms: tuple[float, ...] = ()
    e2el_ms: tuple[float, ...] = ()


class Finding(msgspec.Struct, frozen=True):
    """One number that is wrong."""

    what: str
    said: float
    right: tuple[float, ...]

    def __str__(self) -> str:
        right = " or ".join(dict.fromkeys(f"{value:.0f}" for value in self.right)) or "none"
        return f"{self.what} {self.said:.0f} ({right})"


def right_of(log: list[Served], requests: int | None, *, tail: bool = False) -> Right:
    """The right values of what was served; ``requests`` None = the client sends as many as it likes."""
    good = [served for served in log if _is_good(served)]
    sent = requests if requests is not None else sum(served.aborted_ns is None for served in log)
    streamed = [served for served in good if served.behaviour != "no_stream"]
    return Right(
        completed=len(good),
        failed=sent - len(good),
        output_tokens=sum(served.tokens for served in good),
        ttft_ms=_median(served.ttft_ms for served in streamed),
        e2el_ms=_median(served.e2el_ms for served in good),
        **_gaps(streamed, tail=tail),
    )


def _is_good(served: Served) -> bool:
    """A whole answer that a right client takes for a success."""
    behaviour = BEHAVIOURS.get(served.behaviour or "")
    followed = served.path.endswith("moved")
    as_it_should = behaviour is not None and (behaviour.status is Status.OK or followed)
    return as_it_should and served.done_ns is not None and served.aborted_ns is None


def _median(values: Iterable[float | None]) -> tuple[float, ...]:
    known = [value for value in values if value is not None]
    return (statistics.median(known),) if known else ()


def _gaps(streamed: list[Served], *, tail: bool) -> dict[str, tuple[float, ...]]:
    """ITL and TPOT by the definitions in use: by event, without those that came together, by token."""
    gaps = [(b - a) / 1e6 for served in streamed for a, b in pairwise(served.event_ns)]
    if not gaps:
        return {}
    apart = [gap for gap in gaps if gap > 0.1] or gaps
    by_token = [(served.token_ns[-1] - served.token_ns[0]) / 1e6 for served in streamed]
    after_first = sum(sum(at_ns > served.token_ns[0] for at_ns in served.token_ns) for served in streamed)
    tokens = sum(served.tokens - 1 for served in streamed)
    per_token = (sum(by_token) / tokens, sum(by_token) / after_first)
    return {
        "itl_mean_ms": (statistics.fmean(gaps), statistics.fmean(apart), *per_token),
        "itl_p99_ms": (_p99(gaps), _p99(apart)) if tail else (),
        "tpot_ms": per_token,
    }


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98] if len(values) > 1 else values[0]


def findings(said: Said, right: Right) -> list[Finding]:
    """Every number that the client states and that is wrong."""
    return [*_counts(said, right), *_times(said, right)]


def _counts(said: Said, right: Right) -> Iterator[Finding]:
    values = (said.completed, said.failed, said.output_tokens)
    for what, value, expected in zip(COUNTS, values, (right.completed, right.failed, right.output_tokens), strict=True):
        if value is not None and value != expected:
            yield Finding(what, value, (expected,))


def _times(said: Said, right: Right) -> Iterator[Finding]:
    triples = (
        ("TTFT", said.ttft_ms.p50, right.ttft_ms),
        ("ITL", said.itl_ms.mean, right.itl_mean_ms),
        ("ITL p99", said.itl_ms.p99 if right.itl_p99_ms else None, right.itl_p99_ms),
        ("TPOT", said.tpot_ms.mean, right.tpot_ms),
        ("E2EL", said.e2el_ms.p50, right.e2el_ms),
    )
    for what, value, expected in triples:
        if value is not None and not any(_near(value, each) for each in expected):
            yield Finding(what, value, expected)


def _near(value: float, right: float) -> bool:
    return abs(value - right) <= max(OFF_MS, OFF_SHARE * right)


def says_something(said: Said) -> bool:
    """Whether there is a time in it at all."""
    return any(spread.p50 is not None for spread in (said.ttft_ms, said.itl_ms, said.tpot_ms, said.e2el_ms))
