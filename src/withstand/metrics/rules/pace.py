"""Doubts about the load against the server: past saturation, latency measures the length of the test."""

from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.rounding import percent
from withstand.metrics.rules.case import Case, number
from withstand.metrics.rules.client import sends_late
from withstand.metrics.trend import Growth
from withstand.spec import rate_rps_of

_KEPT_SHARE = 0.97
_LATE_SHARE_MAX = 1 / 3
_ANSWERS_MIN = 10
_BUSY_SHARE = 0.9
"""Of the time of all cores."""


def server_pace(case: Case) -> Doubt | None:
    """Only a constant rate is judged, for a rising one must raise latency; and not where the lateness is ours."""
    if rate_rps_of(case.context.stage.arrivals) is None or sends_late(case):
        return None
    growth, paces = case.evidence.response_growth(), case.evidence.paces()
    if growth is None or paces is None or not growth.sure:
        return _more_on_their_way(case.backlog) if case.backlog else _too_short(case)
    scheduled_rps, ended_rps = paces
    if ended_rps < _KEPT_SHARE * scheduled_rps:
        return _not_achieved(growth, scheduled_rps, ended_rps, case.context.stage.max_concurrency)
    return _grows(growth)


def _too_short(case: Case) -> Doubt | None:
    """Where so many end after the load does, a server that keeps up and one that does not look alike."""
    late, answers = case.evidence.unanswered_at_the_end()
    if answers < _ANSWERS_MIN or late <= _LATE_SHARE_MAX * answers:
        return None
    starved = _starved(case)
    return Doubt(
        DoubtKind.TOO_SHORT_TO_TELL,
        f"{late:,} of {answers:,} answers ({percent(late, answers)}) ended after the last request was due: in so short "
        f"a stage it cannot be known whether the server keeps up or a queue grows.{starved}",
        "Run the stage for several times as long as an answer takes, or at a lower rate.",
        brief=f"{late:,} of {answers:,}",
    )


def _starved(case: Case) -> str:
    """Why answers took so long for a stage of this length, where the machine tells."""
    busy = case.summary.server.cpu_share if case.summary.server else None
    if not case.context.beside_server or busy is None or busy.p50 < _BUSY_SHARE:
        return ""
    share = percent(busy.p50, 1)
    return f" The server runs on this machine, whose cores were {share} busy: it is they that answers waited for."


def _not_achieved(growth: Growth, scheduled_rps: float, ended_rps: float, cap: int | None) -> Doubt:
    capped = "" if cap is None else f" with at most {cap:,} at once"
    return Doubt(
        DoubtKind.RATE_NOT_ACHIEVED,
        f"Requests came at {number(scheduled_rps)}/s and ended at {number(ended_rps)}/s "
        f"({percent(ended_rps, scheduled_rps)}){capped} in the middle 80 % of the stage, {_rise(growth)}. "
        "Past saturation TTFT and E2EL measure the queue, and with it the length of the test.",
        f"Take {number(ended_rps)}/s as what was sustained here, and read latencies from a stage below it.",
        brief=f"{number(ended_rps)} of {number(scheduled_rps)}/s",
    )


def _grows(growth: Growth) -> Doubt:
    return Doubt(
        DoubtKind.LATENCY_GROWS,
        f"The load was constant, {_rise(growth)}: a queue grows, and a longer test would show higher latencies.",
        "Run the stage for longer, or at a lower rate, until the time stays level.",
    )


def _more_on_their_way(backlog: Growth) -> Doubt:
    """Where answers take as long as the stage, their number tells before their times do."""
    return Doubt(
        DoubtKind.LATENCY_GROWS,
        f"The load was constant, while from {backlog.early:,.0f} to {backlog.late:,.0f} requests were on their way: a "
        "queue grows, and a longer test would show higher latencies.",
        "Run the stage for longer, or at a lower rate, until their number stays level.",
    )


def _rise(growth: Growth) -> str:
    early_ms, late_ms = growth.early / 1e6, growth.late / 1e6
    return (
        f"while the median response time rose from {number(early_ms)} to {number(late_ms)} ms "
        f"(+{percent(late_ms - early_ms, early_ms)})"
    )


RULES = (server_pace,)
