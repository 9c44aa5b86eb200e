"""Doubts from the server's side: services that were away, what it did to requests, whether all were ours."""

from withstand.metrics.absences import Absence
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.rounding import counted, percent
from withstand.metrics.rules.case import Case, number
from withstand.record import ON_PURPOSE

_EVICTED_SHARE = 0.01
"""As many lie beyond a p99."""
_REACHED_SHARE = 0.5
_AT_ONCE_MIN = 4
_LOOKS_MIN = 5
_AWAY_BLOCKS = 0.1
_OTHERS_SHARE, _OTHERS_MIN = 0.1, 5


_LEAVE = "Somebody wanted it so: not while a run measures. Measure again."
_MEND = (
    "Mend what ended it, and measure again. Logs stay with a stack that `withstand up` has brought up before; "
    "`restart = true` starts a service anew."
)


def service_lost(case: Case) -> Doubt | None:
    """What was measured is another stack for as long."""
    away = case.context.absences
    if not away:
        return None
    return Doubt(
        DoubtKind.SERVICE_LOST,
        f"{'; '.join(map(_told, away))}: for as long another stack was measured than the one that is described.",
        " ".join(dict.fromkeys(_LEAVE if one.reason in ON_PURPOSE else _MEND for one in away)),
        blocking=away[0].share >= _AWAY_BLOCKS,
        brief=", ".join(f"{one.service} for {_span(one)}" for one in away),
    )


def _told(one: Absence) -> str:
    """``m was away for 21.90 s (90 %) of the stage, from 2.30 s on: m ended (killed by SIGKILL) and said nothing``."""
    when = "from its begin on" if one.from_s == 0 else f"from {number(one.from_s)} s on"
    often = f", {counted(one.times, 'time')}" if one.times > 1 else ""
    return (
        f"{one.service} was away for {_span(one)} of the stage{often}, {when} ({one.service} {one.reason.rstrip('.')})"
    )


def _span(one: Absence) -> str:
    return f"{number(one.for_s)} s ({percent(one.share)})"


def preempted(case: Case) -> Doubt | None:
    """Requests that lost their place in the cache were computed again, and their users waited in mid-answer."""
    server, asked = case.summary.server, case.summary.attempted
    if server is None or not server.preemptions or server.preemptions < _EVICTED_SHARE * asked:
        return None
    kv = f" (KV cache up to {percent(server.kv_share.max)} full)" if server.kv_share else ""
    return Doubt(
        DoubtKind.PREEMPTED,
        f"The server took running requests off {counted(server.preemptions, 'time')} during {counted(asked, 'request')}"
        f"{kv}: the p99 of ITL, TPOT and E2EL is that of evicted requests.",
        "Lower the load or the engine's most running requests (max_num_seqs), or give its KV cache more memory.",
        brief=f"{counted(server.preemptions, 'time')} in {counted(asked, 'request')}",
    )


def held_before_server(case: Case) -> Doubt | None:
    """In flight for us, and never in the engine: something in front of it holds them."""
    server, in_flight = case.summary.server, case.summary.concurrency_mean
    if server is None or server.in_engine is None or in_flight is None:
        return None
    most = server.in_engine.max
    if server.looks < _LOOKS_MIN or in_flight < _AT_ONCE_MIN or most > _REACHED_SHARE * in_flight:
        return None
    return Doubt(
        DoubtKind.HELD_BEFORE_SERVER,
        f"On average {number(in_flight)} requests were in flight, and the engine never had more than {number(most)} "
        f"(running and waiting) in {counted(server.looks, 'look')}: the others waited in front of it, and TTFT and "
        "E2EL measure that too.",
        "Look for a limit in the gateway, proxy or HTTP server before it; or name the metrics of all replicas "
        "(--metrics-url, again for each).",
        brief=f"{number(most)} of {number(in_flight)}",
    )


def other_traffic(case: Case) -> Doubt | None:
    """The server answered more than we asked. Several may share one request: a prefill's, then a decode's."""
    server, ours = case.summary.server, case.summary.attempted
    if server is None or server.answered is None or not server.whole or server.addresses > 1:
        return None
    others = server.answered - ours
    if others < _OTHERS_MIN or others <= _OTHERS_SHARE * ours:
        return None
    return Doubt(
        DoubtKind.OTHER_TRAFFIC,
        f"The server began {counted(server.answered, 'answer')} during the stage, and {ours:,} were asked by us: "
        "somebody else loads it, and the times are those of both loads.",
        "Measure a server that nobody else uses.",
        brief=f"{server.answered:,} against {ours:,}",
    )


RULES = (service_lost, preempted, held_before_server, other_traffic)
