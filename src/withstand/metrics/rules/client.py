"""Doubts about ourselves: was it the client that was measured? Why the limits are these: decision 005."""

from collections.abc import Iterator, Mapping

from withstand.metrics.bounds import LIMITS, TIMES, bounds_of
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.rounding import counted, percent, raised
from withstand.metrics.rules.case import Case, number
from withstand.metrics.summary import Off
from withstand.record import Health
from withstand.spec import Inf

_OWN_CLOCK_SHARE = 0.1
"""What a program's own stamps may be late by is seldom reached, and of a p99 nothing is certain: that is a doubt. It
blocks where it may reach the second digit of a median."""
_LATE_MS, _TOO_LATE_MS, _TOO_LATE_TIMES = 1.0, 5.0, 10
"""Response times are what a user waits, who does not feel a millisecond."""
RATE_SHARE, _TOO_LOW_SHARE = 0.03, 0.1
"""A server keeps a rate when it ends 97 % of it; the same holds for us."""
_BUSY_SHARE, _WAITED_SHARE, _PAUSE_NS = 0.9, 0.01, 5_000_000
"""What is worth naming as a cause; a cause alone is no doubt."""
_WORKERS = "Use more workers, or free the machine of other work."
_CORES = "Free the machine of other work, or run on one with more cores."


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
    limits = {"p50": _OWN_CLOCK_SHARE} if case.evidence.user_stamped else LIMITS
    moved = list(_moved(case, limits))
    if not moved:
        return None
    joined = case.evidence.events_a_read()
    whose = f", or a server that writes {joined} events at once," if joined else ""
    return Doubt(
        DoubtKind.CLIENT_BOUND,
        f"The client's own error{whose} could change what is shown: {'; '.join(moved)}. "
        f"{why_slow(case.context.health)}".rstrip(),
        _remedy(case),
        blocking=True,
    )


def _remedy(case: Case) -> str:
    """More workers help where they are busy, not where they have to wait for a core."""
    health, context = case.context.health, case.context
    starved = any(_waited(h) >= _WAITED_SHARE and _busy(h) < _BUSY_SHARE for h in health if h.wall_ns)
    here = sum(h.place is None for h in health)
    full = context.cores is not None and here >= context.cores
    beside = " The server runs on it too and was short of cores as well." if context.beside_server else ""
    now = counted(len(health), "worker") + (f" on {counted(context.cores, 'core')}" if context.cores and here else "")
    return f"{_CORES if starved or full else _WORKERS}{beside if starved else ''} Now: {now}."


def _moved(case: Case, limits: Mapping[str, float]) -> Iterator[str]:
    """The numbers that may be wrong by more than their limit, a share of what is shown."""
    for name, title in TIMES.items():
        for bound in bounds_of(case.summary, name):
            if bound.key in limits and bound.matters(limits[bound.key]):
                yield f"{title} {bound.key} ({number(bound.shown_ms)} ms) by up to {raised(bound.off_ms)} ms"


def why_slow(health: tuple[Health, ...]) -> str:
    """What kept the worker that fared worst, in one sentence; empty where nothing stands out."""
    kept = [text for h in health if h.wall_ns for text in _kept(h)]
    return f"Worker {'; worker '.join(kept)}." if kept else ""


def _kept(h: Health) -> Iterator[str]:
    facts = []
    if _busy(h) >= _BUSY_SHARE:
        facts.append(f"used {percent(h.cpu_ns, h.wall_ns)} of a core")
    if _waited(h) >= _WAITED_SHARE:
        facts.append(f"waited for a core {percent(h.runqueue_wait_ns or 0, h.wall_ns)} of the time, others had it")
    if h.gc_pause_ns_max >= _PAUSE_NS:
        facts.append(f"collected garbage for {number(h.gc_pause_ns_max / 1e6)} ms at once")
    if facts:
        yield f"{h.worker} {' and '.join(facts)}"


def _busy(h: Health) -> float:
    return h.cpu_ns / h.wall_ns


def _waited(h: Health) -> float:
    return (h.runqueue_wait_ns or 0) / h.wall_ns


def sends_late(case: Case) -> Doubt | None:
    """The load was not the one that was asked for, through us; else, single sends were late."""
    error = case.summary.client_error
    if error is None:
        return None
    if error.rate_share is not None and error.rate_share > RATE_SHARE:
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
    blocking = not closed or share > _TOO_LOW_SHARE
    return Doubt(DoubtKind.SENDS_LATE, f"{what} {_why(case)}".rstrip(), _remedy(case), blocking=blocking)


def _why(case: Case) -> str:
    """Said once: not again where the first doubt has said it."""
    return "" if client_bound(case) else why_slow(case.context.health)


def _response_moved(case: Case, off: Off) -> Doubt | None:
    """The schedule was kept on the whole, but response times count from it and hold our lateness."""
    for key, share in LIMITS.items():
        shown_ms, off_ms = case.summary.response.percentiles.get(key), getattr(off, key)
        if shown_ms is not None and off_ms is not None and off_ms > max(_LATE_MS, share * shown_ms):
            return Doubt(
                DoubtKind.SENDS_LATE,
                f"Without our own late sends the {key} of the response time ({number(shown_ms)} ms) would be up to "
                f"{number(off_ms)} ms lower ({percent(off_ms, shown_ms)}); TTFT, ITL and E2EL count from the send and "
                f"hold nothing of it. {_why(case)}".rstrip(),
                _remedy(case),
                blocking=off_ms > max(_TOO_LATE_MS, _TOO_LATE_TIMES * share * shown_ms),
            )
    return None


def clock_lagged(case: Case) -> Doubt | None:
    """Arrivals were stamped when our loop got round to them, and nobody can say how late that was."""
    moved = list(_moved(case, LIMITS)) if case.evidence.user_stamped else []
    if not moved or client_bound(case):
        return None
    return Doubt(
        DoubtKind.CLOCK_LAGGED,
        f"{case.evidence.user_stamped:,} of {case.summary.completed:,} answers were stamped by the program's own "
        f"clock, when it looked, and that is late by an unknown time. It could change {'; '.join(moved)}.",
        "Run on Linux over TCP, where the kernel stamps the arrivals, or with more workers.",
    )


RULES = (worker_lost, client_bound, sends_late, clock_lagged)
