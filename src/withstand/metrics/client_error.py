"""Our own error in a stage: by how much each shown number may be wrong through us. Bounds from facts.

Why each term is what it is: docs/decisions/005-our-own-error.md. Where a fact is missing there is no bound, not 0.
"""

import math
from statistics import median

import msgspec

from withstand.metrics.context import StageContext
from withstand.metrics.fuzz import Ends, Fuzz
from withstand.metrics.latency import NS_PER_MS, Latencies
from withstand.metrics.ranges import Ranges
from withstand.metrics.sample import Sample
from withstand.metrics.summary import ClientError, Off
from withstand.record import LOOK_NS, Health
from withstand.spec import Inf

_SEND_NS, _SEND_TYPICAL_NS = 10_000, 4_000
"""From the stamp of a send until the kernel has its bytes lies one system call: 99 % and most of them take less."""
_TENTH = 10
_LATE_LOOKS = 0.01
"""What lies beyond a p99."""


def client_error(latencies: Latencies, ranges: Ranges, context: StageContext) -> ClientError:
    """Of one stage. What the records alone tell is always there; the rest wants an account by every worker."""
    response = Ends(latencies.response, ranges.response_low, latencies.response)
    load = ClientError(response=_off(response), rate_share=_rate_share(ranges, context))
    told = [h for h in context.health if not h.lost]
    if not told or any(h.forced_switches is None or h.clock_width_ns is None for h in told):
        return load
    return msgspec.structs.replace(load, **_of_times(latencies, ranges, told))


def _of_times(latencies: Latencies, ranges: Ranges, told: list[Health]) -> dict[str, Off]:
    """Stamps are late, so a time that ends with one is too long; one between two is wrong by what either is."""
    clock, blind = _clock(told), _blind(told, ranges)
    either = msgspec.structs.replace(blind, count=2 * blind.count)
    first = Fuzz(count=ranges.together_first, most=LOOK_NS)
    since, gaps = (clock, blind, _sends(told)), latencies.itl
    gap = (clock, either, Fuzz(count=2 * ranges.together, most=LOOK_NS))
    decode = tuple(fuzz.times(ranges.tpot_share_max) for fuzz in (clock, either, first))
    gap_low, gap_high = Sample.union(gaps, ranges.gap_low), Sample.union(gaps, ranges.gap_high)
    ends = {
        "ttft": Ends(latencies.ttft, ranges.ttft_low, latencies.ttft, (*since, first), (clock,)),
        "tpot": Ends(latencies.tpot, ranges.tpot_low, ranges.tpot_high, decode, decode),
        "itl": Ends(gaps, gap_low, gap_high, gap, gap),
        "e2el": Ends(latencies.e2el, ranges.e2el_low, latencies.e2el, since, (clock,)),
    }
    return {name: _off(of) for name, of in ends.items()}


def _off(ends: Ends) -> Off:
    if not len(ends.shown):
        return Off()
    return Off(mean=ends.off_mean() / NS_PER_MS, p50=ends.off(0.5) / NS_PER_MS, p99=ends.off(0.99) / NS_PER_MS)


def _clock(told: list[Health]) -> Fuzz:
    """The offset between the kernel's clock and ours is known to half the width of its measurement."""
    return Fuzz(rest=max((h.clock_width_ns or 0 for h in told), default=0))


def _blind(told: list[Health], ranges: Ranges) -> Fuzz:
    """Our own stamps are late by as long as the loop looked away: the time between two looks, or two turns at most."""
    if not ranges.user_stamped:
        return Fuzz()
    blind = [h.blind for h in told if h.blind]
    if not blind:
        return Fuzz(rest=2 * max(h.loop_stall_ns_max for h in told))
    late = math.ceil(_LATE_LOOKS * sum(b.n for b in blind))
    return Fuzz(rest=max(b.p99_ns for b in blind), count=late, most=max(b.max_ns for b in blind))


def _sends(told: list[Health]) -> Fuzz:
    """Some sends lost their core between stamp and call: as many as can be expected, for a turn of the loop at most."""
    cpu_ns = max(1, sum(h.cpu_ns for h in told))
    forced = sum(h.forced_switches or 0 for h in told)
    hit = round(sum(h.sent for h in told) * min(1.0, forced * _SEND_TYPICAL_NS / cpu_ns))
    return Fuzz(rest=_SEND_NS, count=hit, most=max(h.loop_stall_ns_max for h in told))


def _rate_share(ranges: Ranges, context: StageContext) -> float | None:
    """What of the load is missing through us."""
    waits = sorted(zip(ranges.ready_ns, ranges.late_ns, strict=True))
    span_ns = waits[-1][0] - waits[0][0] if waits else 0
    if not span_ns:
        return None
    if not isinstance(context.stage.arrivals, Inf):
        return _drawn_out(waits) / span_ns
    cap = context.stage.max_concurrency
    return None if cap is None else _slots_kept(waits, context.health) / (cap * span_ns)


def _drawn_out(waits: list[tuple[int, int]]) -> float:
    """How much later the last tenth was sent than the first, against the schedule."""
    late = [late_ns for _, late_ns in waits]
    tenth = max(1, len(late) // _TENTH)
    return max(0.0, median(late[-tenth:]) - median(late[:tenth]))


def _slots_kept(waits: list[tuple[int, int]], health: tuple[Health, ...]) -> float:
    """The time for which slots waited for our turn: to see an answer's end and to send the next request.

    The requests that fill the slots at the start are left out.
    """
    start_ns = waits[0][0]
    later = [late_ns for ready_ns, late_ns in waits if ready_ns > start_ns]
    look_ns = max((h.lag.p50_ns for h in health if h.lag), default=0)
    return sum(later) + look_ns * len(later)
