"""Did a request keep a promise? Counts of what broke it, of what could have: one a request, and of ITL one a gap."""

from withstand.metrics.latency import NS_PER_MS, Timing, timing_of
from withstand.record import Record, Status
from withstand.spec import Promise

_OURS = frozenset({Status.NOT_SENT, Status.LOST})
_NOTHING = (0, 0)


def broken(record: Record, promise: Promise, timing: Timing | None = None) -> tuple[int, int]:
    """(broken, all) for one request; (0, 0) where it says nothing: our own client's fault, or cut by us in time.

    ``timing`` spares that of a good answer from being computed once more.
    """
    if record.status in _OURS:
        return _NOTHING
    if record.status is Status.CANCELLED:
        return _of_a_cut_one(record, promise)
    if record.status is not Status.OK:
        return 1, 1
    return _of_an_answer(timing or timing_of(record), promise)


def _of_an_answer(timing: Timing, promise: Promise) -> tuple[int, int]:
    if promise.limit is None:
        return 0, 1
    limit_ns = promise.limit * NS_PER_MS
    if promise.metric == "itl":
        return sum(gap > limit_ns for gap in timing.gaps_ns), len(timing.gaps_ns)
    time_ns = took_ns(timing, promise.metric)
    return _NOTHING if time_ns is None else (int(time_ns > limit_ns), 1)


def took_ns(timing: Timing, metric: str) -> float | None:
    """One of an answer's times; without a schedule the response time is that from the send."""
    times: dict[str, float | None] = {
        "ttft": timing.ttft_ns,
        "tpot": timing.tpot_ns,
        "e2el": timing.e2el_ns,
        "response": timing.response_ns if timing.response_ns is not None else timing.e2el_ns,
    }
    return times[metric]


def _of_a_cut_one(record: Record, promise: Promise) -> tuple[int, int]:
    """Cut when it had broken the promise already: longer would not have been better."""
    if promise.limit is None or record.sent_ns is None or record.end_ns is None:
        return _NOTHING
    begin_ns = record.scheduled_ns if promise.metric == "response" else record.sent_ns
    waits_for_first = promise.metric == "ttft" and not record.chunk_ns
    waits_for_last = promise.metric in {"e2el", "response"}
    too_long = record.end_ns - (record.sent_ns if begin_ns is None else begin_ns) > promise.limit * NS_PER_MS
    return (1, 1) if too_long and (waits_for_first or waits_for_last) else _NOTHING
