"""Doubts about ourselves: was it the client that was measured?"""

from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.rules.case import Case, median_of, number, percent
from withstand.record import Health
from withstand.spec import Inf

_BUSY_SHARE = 0.9
_LATE_MS = 1.0
_LATE_SHARE = 0.01
"""A lateness of 1 % of the response time moves the third digit that is shown of it."""
_TOO_LATE_MS = 5.0
_TOO_LATE_SHARE = 0.1
_STALL_MS = 5.0
"""Shorter stalls are the everyday noise of an operating system."""


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


def client_busy(case: Case) -> Doubt | None:
    """A worker had no time to spare."""
    busy = [h for h in case.context.health if h.wall_ns and h.cpu_ns / h.wall_ns >= _BUSY_SHARE]
    if not busy:
        return None
    worst = max(busy, key=_cpu_share)
    return Doubt(
        DoubtKind.CLIENT_BUSY,
        f"Worker {worst.worker} used {percent(worst.cpu_ns, worst.wall_ns)} of a core "
        f"({number(worst.cpu_ns / 1e9)} s of {number(worst.wall_ns / 1e9)} s): the client was at its own limit.",
        f"Use more workers (now {len(case.context.health)}) or a machine with more free cores.",
        blocking=True,
    )


def _cpu_share(health: Health) -> float:
    return health.cpu_ns / health.wall_ns


def sends_late(case: Case) -> Doubt | None:
    """The schedule was not kept by us. Without a schedule nothing can be late."""
    late_ms = case.summary.lateness.percentiles.get("p99")
    response_ms = median_of(case.summary.response)
    if isinstance(case.context.stage.arrivals, Inf) or late_ms is None or response_ms is None:
        return None
    if late_ms <= max(_LATE_MS, _LATE_SHARE * response_ms):
        return None
    return Doubt(
        DoubtKind.SENDS_LATE,
        f"One send in a hundred was over {number(late_ms)} ms late by our own fault, "
        f"which is {percent(late_ms, response_ms)} of the median response time ({number(response_ms)} ms).",
        "Use more workers, or free the machine of other work; see the stage's self-check.",
        blocking=late_ms > max(_TOO_LATE_MS, _TOO_LATE_SHARE * response_ms),
    )


def clock_lagged(case: Case) -> Doubt | None:
    """Arrivals were stamped when our loop got round to them, and it did not always."""
    stall_ms = max((h.loop_stall_ns_max for h in case.context.health), default=0) / 1e6
    itl_ms, e2el_ms = median_of(case.summary.itl), median_of(case.summary.e2el)
    bearable_ms = itl_ms / 2 if itl_ms is not None else (e2el_ms or 0.0) / 100
    if not case.evidence.user_stamped or stall_ms <= max(_STALL_MS, bearable_ms):
        return None
    return Doubt(
        DoubtKind.CLOCK_LAGGED,
        f"{case.evidence.user_stamped:,} of {case.summary.completed:,} answers were stamped by the program's clock, "
        f"and the loop once stood still for {number(stall_ms)} ms: a time may be wrong by as much.",
        "Run on Linux without TLS in the client, where the kernel stamps the arrivals, or with more workers.",
    )


RULES = (worker_lost, client_busy, sends_late, clock_lagged)
