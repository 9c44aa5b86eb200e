"""Doubts about ourselves: was it the client that was measured? Why the limits are these: decision 005."""

import math
from collections.abc import Iterator, Mapping

from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.rules.case import Case, counted, number, percent
from withstand.metrics.summary import Distribution, Off
from withstand.record import Health
from withstand.spec import Inf

_PROMISE_MS = 0.1
"""To so much our times are meant to be true; nothing below it is worth a doubt."""
_DECIMALS = 2
"""Nothing is shown finer."""
_LIMITS = {"p50": 0.01, "p99": 0.05}
"""The third digit of what is typical; of a p99 the second, which is all that ten thousand answers tell of it."""
_OWN_CLOCK_SHARE = 0.1
"""What a program's own stamps may be late by is seldom reached, and of a p99 nothing is certain: that is a doubt. It
blocks where it may reach the second digit of a median."""
_LATE_MS, _TOO_LATE_MS, _TOO_LATE_TIMES = 1.0, 5.0, 10
"""Response times are what a user waits, who does not feel a millisecond."""
_RATE_SHARE, _TOO_LOW_SHARE = 0.03, 0.1
"""A server keeps a rate when it ends 97 % of it; the same holds for us."""
_BUSY_SHARE, _WAITED_SHARE, _PAUSE_NS = 0.9, 0.01, 5_000_000
"""What is worth naming as a cause; a cause alone is no doubt."""
_TIMES = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL"}
_REMEDY = "Use more workers, or free the machine of other work."


def worker_lost(case: Case) -> Doubt | None:
    """A process of ours died."""
    lost = [h for h in case.context.health if h.lost]
    if not lost:
        return None
    names = ", ".join(f"{h.worker} on node {h.place.host}" if h.place else str(h.worker) for h in lost)
    return Doubt(
        DoubtKind.WORKER_LOST,
        f"{len(lost)} of {len(case.context.health)} workers died in mid-stage (worker {names}): "
        "their part of the load was not sent to the end.",
        "See what the stage's error says of the end, look at that machine's memory, and run the stage again.",
        blocking=True,
    )


def client_bound(case: Case) -> Doubt | None:
    """Our own error could change a digit that matters."""
    limits = {"p50": _OWN_CLOCK_SHARE} if case.evidence.user_stamped else _LIMITS
    moved = list(_moved(case, limits))
    if not moved:
        return None
    return Doubt(
        DoubtKind.CLIENT_BOUND,
        f"The client's own error could change what is shown: {'; '.join(moved)}. "
        f"{why_slow(case.context.health)}".rstrip(),
        f"{_REMEDY} Now: {counted(len(case.context.health), 'worker')}.",
        blocking=True,
    )


def _moved(case: Case, limits: Mapping[str, float]) -> Iterator[str]:
    """The numbers that may be wrong by more than their limit, a share of what is shown."""
    for name, title in _TIMES.items():
        shown: Distribution = getattr(case.summary, name)
        off: Off = getattr(case.summary.client_error, name, Off())
        for key, share in limits.items():
            value_ms, off_ms = shown.percentiles.get(key), getattr(off, key)
            if value_ms is None or off_ms is None:
                continue
            if round(off_ms, _DECIMALS) > max(_PROMISE_MS, max(share, _chance(key, case.summary.completed)) * value_ms):
                yield f"{title} {key} ({number(value_ms)} ms) by up to {number(off_ms)} ms"


def _chance(key: str, answers: int) -> float:
    """The share of a percentile that so few answers leave open anyway: half of one by the root of those beyond it."""
    beyond = answers * (1 - int(key[1:]) / 100)
    return 0.5 / math.sqrt(beyond) if beyond else math.inf


def why_slow(health: tuple[Health, ...]) -> str:
    """What kept the worker that fared worst, in one sentence; empty where nothing stands out."""
    kept = [text for h in health if h.wall_ns for text in _kept(h)]
    return f"Worker {'; worker '.join(kept)}." if kept else ""


def _kept(h: Health) -> Iterator[str]:
    busy, waited = h.cpu_ns / h.wall_ns, (h.runqueue_wait_ns or 0) / h.wall_ns
    facts = []
    if busy >= _BUSY_SHARE:
        facts.append(f"used {percent(h.cpu_ns, h.wall_ns)} of a core")
    if waited >= _WAITED_SHARE:
        facts.append(f"waited for a core {percent(h.runqueue_wait_ns or 0, h.wall_ns)} of the time, others had it")
    if h.gc_pause_ns_max >= _PAUSE_NS:
        facts.append(f"collected garbage for {number(h.gc_pause_ns_max / 1e6)} ms at once")
    if facts:
        yield f"{h.worker} {' and '.join(facts)}"


def sends_late(case: Case) -> Doubt | None:
    """The load was not the one that was asked for, through us; else, single sends were late."""
    error = case.summary.client_error
    if error is None:
        return None
    if error.rate_share is not None and error.rate_share > _RATE_SHARE:
        return _less_load(case, error.rate_share)
    return None if isinstance(case.context.stage.arrivals, Inf) else _response_moved(case, error.response)


def _less_load(case: Case, share: float) -> Doubt:
    """A schedule that we drew out is another load; slots that waited for us make less of it."""
    closed = isinstance(case.context.stage.arrivals, Inf)
    what = (
        f"{percent(share, 1)} of the slots' time went by between an answer and the next request, through us: requests "
        "and tokens a second are too low by as much."
        if closed
        else f"The sends fell behind the schedule by {percent(share, 1)} of its length, through us: less load was "
        "offered than asked."
    )
    why = why_slow(case.context.health)
    return Doubt(DoubtKind.SENDS_LATE, f"{what} {why}".rstrip(), _REMEDY, blocking=not closed or share > _TOO_LOW_SHARE)


def _response_moved(case: Case, off: Off) -> Doubt | None:
    """The schedule was kept on the whole, but response times count from it and hold our lateness."""
    for key, share in _LIMITS.items():
        shown_ms, off_ms = case.summary.response.percentiles.get(key), getattr(off, key)
        if shown_ms is not None and off_ms is not None and off_ms > max(_LATE_MS, share * shown_ms):
            why = why_slow(case.context.health)
            return Doubt(
                DoubtKind.SENDS_LATE,
                f"Without our own late sends the {key} of the response time ({number(shown_ms)} ms) would be up to "
                f"{number(off_ms)} ms lower ({percent(off_ms, shown_ms)}); TTFT, ITL and E2EL count from the send and "
                f"hold nothing of it. {why}".rstrip(),
                _REMEDY,
                blocking=off_ms > max(_TOO_LATE_MS, _TOO_LATE_TIMES * share * shown_ms),
            )
    return None


def clock_lagged(case: Case) -> Doubt | None:
    """Arrivals were stamped when our loop got round to them, and nobody can say how late that was."""
    moved = list(_moved(case, _LIMITS)) if case.evidence.user_stamped else []
    if not moved or client_bound(case):
        return None
    return Doubt(
        DoubtKind.CLOCK_LAGGED,
        f"{case.evidence.user_stamped:,} of {case.summary.completed:,} answers were stamped by the program's own "
        f"clock, when it looked, and that is late by an unknown time. It could change {'; '.join(moved)}.",
        "Run on Linux over TCP, where the kernel stamps the arrivals, or with more workers.",
    )


RULES = (worker_lost, client_bound, sends_late, clock_lagged)
