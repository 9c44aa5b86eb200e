"""The right answer of a behaviour, as values: what a client must report of it.

All times come from the log of what was really written, never from the schedule, so that a busy machine cannot make
a right client wrong. The arithmetic is this module's own: nothing is shared with what it judges.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import fmean

import msgspec

from withstand.metrics.doubts import DoubtKind
from withstand.record import Status, TokensFrom
from withstand.testing.truth.behaviours import parts_of
from withstand.testing.truth.served import Served

SCHEMA = 1
_NS_PER_MS = 1e6


class Times(msgspec.Struct, frozen=True):
    """Some times in ms. Percentiles are linear between neighbours, as numpy has them."""

    n: int
    mean_ms: float
    p50_ms: float
    p99_ms: float


class Right(msgspec.Struct, frozen=True, kw_only=True):
    """What is right for one answer. None = there is nothing to report: a failure's times are no latency."""

    number: int
    behaviour: str
    status: Status
    """In the words of withstand's records; another client may have other words."""
    success: bool | None
    """Whether it counts as a success; None = both can be defended."""
    doubt: DoubtKind | None = None
    """What a careful client says against its own numbers, although the answer is a success."""
    http_status: int | None = None
    streamed: bool = False
    finish_reason: str | None = None
    output_tokens: int | None = None
    """As ``tokens_from`` counts them."""
    tokens_from: TokensFrom | None = None
    """The server's usage where it was told, else the events."""
    written_tokens: int
    """That were really said, whatever was claimed, and also by an answer that failed."""
    output_events: int | None = None
    """Events with content, reasoning or a piece of a tool call."""
    ttft_ms: float | None = None
    itl_ms: Times | None = None
    """Gaps between events; those that left in one write have none."""
    tpot_ms: float | None = None
    """(Last token - first token) / (written tokens - 1)."""
    e2el_ms: float | None = None
    slack_ms: float = 0.0
    """The log's own uncertainty: the longest writing of an event."""


class RightRun(msgspec.Struct, frozen=True, kw_only=True):
    """What is right for all answers together: for clients that report nothing smaller."""

    completed: int
    failed: int
    either: int
    """Answers that may be counted as success or as failure."""
    output_tokens: int
    written_tokens: int
    """Both of the completed ones."""
    ttft_ms: Times | None
    itl_ms: Times | None
    tpot_ms: Times | None
    e2el_ms: Times | None


class RightLog(msgspec.Struct, frozen=True, kw_only=True):
    """What ``GET /truth/right`` says."""

    schema: int = SCHEMA
    run: RightRun
    answers: list[Right]


def expected(behaviour: str, served: Served) -> Right:
    """The right report of one answer that was served by this behaviour."""
    status, success, doubt = _verdict(behaviour, served)
    right = Right(
        number=served.number,
        behaviour=behaviour,
        status=status,
        success=success,
        doubt=doubt,
        http_status=served.status,
        streamed=served.streamed,
        written_tokens=served.tokens,
    )
    return _with_numbers(right, served) if status is Status.OK else right


def _verdict(behaviour: str, served: Served) -> tuple[Status, bool | None, DoubtKind | None]:
    """(Status, success, doubt): the first fault among several behaviours decides."""
    if served.behaviour is None:
        return Status.HTTP_ERROR, False, None
    parts = [part for part, _ in parts_of(behaviour)]
    for part in parts:
        if part.status is not Status.OK:
            return part.status, part.success, None
    return Status.OK, True, next((part.doubt for part in parts if part.doubt), None)


def _with_numbers(right: Right, served: Served) -> Right:
    usage, events = served.usage_planned, len(served.event_ns)
    counted = events if served.streamed else None
    source = TokensFrom.CHUNKS if served.streamed else None
    return msgspec.structs.replace(
        right,
        finish_reason=served.finish_planned,
        output_tokens=counted if usage is None else usage,
        tokens_from=source if usage is None else TokensFrom.SERVER,
        output_events=counted,
        ttft_ms=served.ttft_ms if served.streamed else None,
        itl_ms=times_of(_gaps_ms(served)),
        tpot_ms=served.tpot_ms if served.streamed else None,
        e2el_ms=served.e2el_ms,
        slack_ms=served.writing_ns_max / _NS_PER_MS,
    )


def expected_run(log: Iterable[Served]) -> RightRun:
    """The right report of a whole log."""
    pairs = [(served, expected(served.behaviour or "plain", served)) for served in log]
    good = [(served, right) for served, right in pairs if right.success and right.status is Status.OK]
    either = sum(right.success is None for _, right in pairs)
    return RightRun(
        completed=len(good),
        failed=len(pairs) - len(good) - either,
        either=either,
        output_tokens=sum(right.output_tokens or 0 for _, right in good),
        written_tokens=sum(right.written_tokens for _, right in good),
        ttft_ms=times_of([right.ttft_ms for _, right in good if right.ttft_ms is not None]),
        itl_ms=times_of([gap_ms for served, _ in good for gap_ms in _gaps_ms(served)]),
        tpot_ms=times_of([right.tpot_ms for _, right in good if right.tpot_ms is not None]),
        e2el_ms=times_of([right.e2el_ms for _, right in good if right.e2el_ms is not None]),
    )


def right_log(log: Sequence[Served]) -> RightLog:
    """The right report of every answer, and of all together."""
    answers = [expected(served.behaviour or "plain", served) for served in log]
    return RightLog(run=expected_run(log), answers=answers)


def _gaps_ms(served: Served) -> list[float]:
    if not served.streamed:
        return []
    return [(b - a) / _NS_PER_MS for a, b in pairwise(served.event_ns) if b > a]


def times_of(values_ms: list[float]) -> Times | None:
    """Mean and percentiles; None of nothing."""
    if not values_ms:
        return None
    ordered = sorted(values_ms)
    return Times(len(ordered), fmean(ordered), _percentile(ordered, 0.5), _percentile(ordered, 0.99))


def _percentile(ordered: list[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
