"""How much went through a stage: duration, requests and tokens a second, how many at once, how many were good.

Everything is per second of the counted window: first send to last end. None where it cannot be known.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol, TypeVar

from withstand.metrics.flow import BINS_PER_S, Flow
from withstand.metrics.latency import NS_PER_MS, Timing
from withstand.metrics.summary import StageSummary
from withstand.record import Record
from withstand.spec import Slo

NS_PER_S = 1e9


def duration_s(flow: Flow) -> float | None:
    """First send, or try, to last end; None if nothing was sent, or all in one instant."""
    if flow.begin_ns is None or flow.end_ns is None or flow.end_ns == flow.begin_ns:
        return None
    return (flow.end_ns - flow.begin_ns) / NS_PER_S


class Answered(Protocol):
    """A stage, as far as how many answers it had."""

    @property
    def completed(self) -> int | None:
        """Good ones."""
        ...


StageT = TypeVar("StageT", bound=Answered)
_FEWEST = 10


def telling(stages: Sequence[StageT]) -> list[StageT]:
    """Those whose rate is not that of where a few answers happened to fall: ten or more; all, where none has these."""
    return [stage for stage in stages if (stage.completed or 0) >= _FEWEST] or list(stages)


def per_second(count: float | None, seconds: float | None) -> float | None:
    """A throughput; None if either is unknown."""
    return None if count is None or seconds is None else count / seconds


def rate_of(instants_ns: Sequence[int]) -> float | None:
    """Events a second by their own instants: gaps / time between the first and the last."""
    span_ns = max(instants_ns) - min(instants_ns) if len(instants_ns) > 1 else 0
    return (len(instants_ns) - 1) / (span_ns / NS_PER_S) if span_ns else None


def concurrency_mean(flow: Flow) -> float | None:
    """Requests in flight, averaged over time: the sum of their times / duration."""
    seconds = duration_s(flow)
    if seconds is None:
        return None
    return (sum(flow.left) - sum(flow.sent)) / NS_PER_S / seconds


def concurrency_peak(flow: Flow) -> int | None:
    """The most requests in flight at one instant."""
    return max((level for _, level in flow.course()), default=None)


def tokens_peak(flow: Flow) -> float | None:
    """Output tokens in the best whole second of the run's clock; None if no token has an instant."""
    seconds: defaultdict[int, float] = defaultdict(float)
    for slot, tokens in flow.tokens_by_bin.items():
        seconds[slot // BINS_PER_S] += tokens
    return max(seconds.values(), default=None)


def has_limits(slo: Slo) -> bool:
    """Whether anything was asked of a good request."""
    return any(limit is not None for limit in (slo.ttft, slo.tpot, slo.e2el))


def good_share(stage: StageSummary) -> float:
    """Good requests among all that were attempted."""
    return share_good(stage.request_goodput, stage.duration_s, stage.attempted)


def share_good(request_goodput: float | None, duration_s: float | None, attempted: int) -> float:
    """The same from the three numbers; 0 where one of them is missing."""
    if not attempted or request_goodput is None or not duration_s:
        return 0.0
    return round(request_goodput * duration_s) / attempted


def is_good(record: Record, timing: Timing, slo: Slo) -> bool:
    """Whether an answer kept every limit. What was not seen was not kept, but an answer of one token has no TPOT."""
    one_token = record.output_tokens is not None and record.output_tokens < 2
    return (
        _keeps(timing.ttft_ns, slo.ttft)
        and _keeps(timing.e2el_ns, slo.e2el)
        and ((one_token and timing.tpot_ns is None) or _keeps(timing.tpot_ns, slo.tpot))
    )


def _keeps(value_ns: float | None, limit_ms: float | None) -> bool:
    if limit_ms is None:
        return True
    return value_ns is not None and value_ns / NS_PER_MS <= limit_ms
