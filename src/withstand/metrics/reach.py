"""What each doubt takes away: one table, for everybody who judges numbers or compares them.

A doubt makes a number fall (it is not what its name says), or unknown (it may be right, and nobody can know), or stands
beside it, to be read with it. Why each line is as it is follows from how the metric is defined (``catalogue``) and when
the doubt is raised (``doubts.RULES``). A number is named by its metric, or by metric and statistic: ``ttft.p99``.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum

import msgspec

from withstand.metrics.bounds import unmoved
from withstand.metrics.catalogue import CATALOGUE
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.rules.client import RATE_SHARE
from withstand.metrics.summary import StageSummary

_Names = frozenset[str]
_OTHER = "other"
"""Whatever another tool measures under a name of its own."""
_NONE: _Names = frozenset()
_EVERYTHING: _Names = frozenset({*CATALOGUE, _OTHER})
_OTHERS: _Names = frozenset({_OTHER})
_SUCCESS: _Names = frozenset({"success_rate", "agent_success_rate"})
_SURVIVORS = _EVERYTHING - _SUCCESS
_FIRST: _Names = frozenset({"ttft", "ttft_scheduled", "agent_final_ttft"})
_SCHEDULED: _Names = frozenset({"ttft_scheduled", "response"})
_WHOLE: _Names = frozenset({"e2el", "response"})
_GAPS: _Names = frozenset({"itl", "itl_per_token"})
_DECODE: _Names = _GAPS | {"itl_request_mean", "tpot"}
_GOOD: _Names = frozenset({"request_goodput"})
_QUEUE = _FIRST | _WHOLE | _GOOD
_TIMES = _FIRST | _WHOLE | _DECODE
_TOKENS: _Names = frozenset({"output_throughput", "total_token_throughput"})
_RATES = _TOKENS | _GOOD | {"request_throughput"}
_PER_TOKEN = _TOKENS | {"tpot"}
_PER_GPU: _Names = frozenset({"output_throughput_per_gpu", "input_throughput_per_gpu", "throughput_per_gpu"})
_WORK = _RATES | _WHOLE | _PER_GPU | {"input_throughput"}
_P99: _Names = frozenset(f"{name}.p99" for name in _TIMES)
_P95: _Names = frozenset(f"{name}.p95" for name in _TIMES)
_PEAKS: _Names = frozenset({"output_throughput_peak", "concurrency_peak"})
_INSTANT_TPOT_MS = 1.0
"""No engine takes so little for a token: what is held back is the whole answer, not parts of it."""


class Effect(StrEnum):
    """What a doubt does to a number."""

    FALLS = "falls"
    UNKNOWN = "unknown"
    BESIDE = "beside"


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What else must be known of a run, because a doubt of one kind takes more or less away."""

    capped: bool = False
    """The client held requests back: a time that counts from the send holds no queue of its own making."""
    tpot_ms: float | None = None
    """The median, or else the mean."""
    missing_share: float | None = None
    """Of the requests asked, those without a good answer."""
    less_load: bool = False
    """Through us the load was not the one that was asked for."""
    unmoved: frozenset[str] = frozenset()
    """Numbers that our own error cannot change by a digit that matters, whatever it does to others."""


def circumstances_of(stage: StageSummary) -> Circumstances:
    """Those of a stage, ours or another tool's."""
    told, error = stage.tpot.percentiles.get("p50"), stage.client_error
    return Circumstances(
        capped=stage.load.max_concurrency is not None,
        tpot_ms=stage.tpot.mean if told is None else told,
        missing_share=None if stage.success_rate is None else 1 - stage.success_rate,
        less_load=error is not None and (error.rate_share or 0.0) > RATE_SHARE,
        unmoved=frozenset(unmoved(stage)),
    )


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What one kind of doubt does: ``falls`` in any case, ``blocked`` falls where the doubt is a blocking one."""

    when: str = ""
    """In which circumstances, in words; empty = in all that the lines before leave."""
    holds: Callable[[Circumstances], bool] = lambda _: True
    falls: _Names = _NONE
    blocked: _Names = _NONE
    unknown: _Names = _NONE
    beside: _Names = _NONE
    spares: Callable[[Circumstances], _Names] = lambda _: _NONE
    """Numbers that it only stands beside after all."""


def _missing(share: float) -> Callable[[Circumstances], bool]:
    """At least so many; where nobody knows how many, it may be."""
    return lambda of: of.missing_share is None or of.missing_share >= share


def _instant(of: Circumstances) -> bool:
    return of.tpot_ms is not None and of.tpot_ms < _INSTANT_TPOT_MS


_BESIDE = Line(beside=_EVERYTHING)
_LOST = (
    Line(
        when="5 % of the requests or more",
        holds=lambda of: (of.missing_share or 0.0) >= 0.05,
        blocked=_SURVIVORS,
        unknown=_P95 | _P99,
        beside=_EVERYTHING,
    ),
    Line(
        when="1 % or more, or nobody knows",
        holds=lambda of: of.missing_share is None or of.missing_share >= 0.01,
        blocked=_SURVIVORS,
        unknown=_P99,
        beside=_EVERYTHING,
    ),
    Line(when="fewer", blocked=_SURVIVORS, beside=_EVERYTHING),
)
"""Who got no answer may stand in the tail: of all requests, no percentile above the share of the others is known."""
_QUEUES = Line(falls=_QUEUE)
_MOVED = "of what it may have moved"

TABLE: Mapping[DoubtKind, tuple[Line, ...]] = {
    DoubtKind.WORKER_LOST: (Line(falls=_EVERYTHING),),
    DoubtKind.CLIENT_BOUND: (Line(when=_MOVED, falls=_TIMES | _GOOD, beside=_RATES, spares=lambda of: of.unmoved),),
    DoubtKind.SENDS_LATE: (
        Line(when="less load than asked", holds=lambda of: of.less_load, blocked=_TIMES | _RATES, unknown=_RATES),
        Line(when="single sends late", blocked=_SCHEDULED, unknown=_SCHEDULED),
    ),
    DoubtKind.CLOCK_LAGGED: (Line(unknown=_P99 | _GAPS, beside=_TIMES),),
    DoubtKind.SERVICE_LOST: (Line(blocked=_EVERYTHING, unknown=_RATES | _SUCCESS | _P95 | _P99, beside=_EVERYTHING),),
    DoubtKind.REQUESTS_FAILED: _LOST,
    DoubtKind.RATE_LIMITED: (Line(falls=_SUCCESS, blocked=_EVERYTHING, unknown=_RATES),),
    DoubtKind.ERROR_TEXT: (Line(falls=_EVERYTHING),),
    DoubtKind.RECORDS_MISSING: (
        Line(blocked=_EVERYTHING, unknown=_RATES | _SUCCESS | _P95 | _P99, beside=_EVERYTHING),
    ),
    DoubtKind.FEWER_THAN_ASKED: _LOST,
    DoubtKind.STOPPED_EARLY: (Line(unknown=_RATES, beside=_EVERYTHING),),
    DoubtKind.RATE_NOT_ACHIEVED: (
        Line(when="with a cap", holds=lambda of: of.capped, falls=_SCHEDULED),
        Line(when="without a cap", falls=_QUEUE),
    ),
    DoubtKind.LATENCY_GROWS: (_QUEUES,),
    DoubtKind.TOO_SHORT_TO_TELL: (Line(unknown=_QUEUE | _RATES),),
    DoubtKind.NOT_STREAMED: (Line(falls=_FIRST | _DECODE),),
    DoubtKind.HOP_BUFFERS: (
        Line(when="TPOT below 1 ms: whole answers", holds=_instant, falls=_FIRST | _DECODE),
        Line(when="in bursts", falls=_GAPS, beside=_FIRST | _DECODE),
    ),
    DoubtKind.SHARED_READS: (Line(when=_MOVED, unknown=_GAPS, spares=lambda of: of.unmoved),),
    DoubtKind.SEVERAL_TOKENS_AN_EVENT: (Line(beside=_DECODE),),
    DoubtKind.CLAIMED_NOT_COUNTED: (Line(blocked=_PER_TOKEN, unknown=_PER_TOKEN),),
    DoubtKind.TOKENS_ESTIMATED: (Line(unknown=_PER_TOKEN),),
    DoubtKind.LENGTHS_DIFFER: (Line(blocked=_WORK, beside=_WORK),),
    DoubtKind.FINISH_REASONS_MIXED: (Line(beside=_WORK),),
    DoubtKind.PREEMPTED: (Line(beside=_TIMES | _RATES),),
    DoubtKind.HELD_BEFORE_SERVER: (Line(beside=_QUEUE | _RATES),),
    DoubtKind.OTHER_TRAFFIC: (Line(unknown=_TIMES | _RATES),),
    DoubtKind.PREFIX_CACHE: (Line(beside=_QUEUE | _RATES),),
    DoubtKind.WARMUP_MISSING: (_BESIDE,),
    DoubtKind.SIMULATED: (_BESIDE,),
    DoubtKind.IMPOSSIBLE: (Line(falls=_EVERYTHING),),
    DoubtKind.CLIENT_LIMIT: (Line(falls=_EVERYTHING),),
    DoubtKind.SUMS_DISAGREE: (Line(falls=_RATES),),
    DoubtKind.CONCURRENCY_DISAGREES: (Line(falls=_WHOLE, beside=_FIRST),),
    DoubtKind.TPOT_AGAINST_ITL: (Line(beside=_DECODE),),
    DoubtKind.EVENTS_AGAINST_TOKENS: (Line(beside=_PER_TOKEN | _DECODE),),
    DoubtKind.PEAK_BELOW_MEAN: (Line(falls=_PEAKS),),
    DoubtKind.MEAN_FAR_FROM_MEDIAN: (Line(beside=frozenset({"ttft.mean"})),),
    DoubtKind.SPEED_NO_THROUGHPUT: (Line(falls=_TOKENS, beside=_OTHERS),),
    DoubtKind.LIKE_A_LIMITER: (Line(falls=_SUCCESS),),
    DoubtKind.CONCURRENCY_NOT_REACHED: (_BESIDE,),
    DoubtKind.PARTS_AGAINST_WHOLE: (Line(unknown=_PER_TOKEN),),
    DoubtKind.QUEUE_OF_A_BURST: (_QUEUES,),
    DoubtKind.FLAT_THROUGHPUT: (_QUEUES,),
    DoubtKind.SPEED_BESIDE_THROUGHPUT: (Line(falls=_TOKENS | _OTHERS),),
    DoubtKind.BACKEND_NO_ENGINE: (Line(),),
    DoubtKind.OTHER_CONDITIONS: (_BESIDE,),
    DoubtKind.TOO_FEW_SAMPLES: (Line(unknown=_P99),),
    DoubtKind.PRINTED_TOO_COARSE: (Line(beside=_RATES),),
}
"""Of several lines of one kind the first whose circumstances hold."""


def effect(doubt: Doubt, number: str, of: Circumstances) -> Effect | None:
    """What a doubt about a run does to one of its numbers; None = it has nothing to do with it.

    A blocking doubt of a kind from which no number falls takes everything: no reason to believe any is known.
    """
    line = next(line for line in TABLE[doubt.kind] if line.holds(of))
    if number in line.spares(of):
        return Effect.BESIDE
    fallen = line.falls | (line.blocked if doubt.blocking else _NONE)
    if doubt.blocking and not fallen:
        return Effect.FALLS
    sets = ((Effect.FALLS, fallen), (Effect.UNKNOWN, line.unknown), (Effect.BESIDE, line.beside))
    return next((found for found, names in sets if _is_among(number, names)), None)


def _is_among(number: str, names: _Names) -> bool:
    metric = number.partition(".")[0]
    return number in names or (metric if metric in CATALOGUE else _OTHER) in names


def reach_markdown() -> str:
    """The table of the documentation page."""
    rows = [f"| `{kind}`{_when(line)} | {_taken(line)} |" for kind in DoubtKind for line in TABLE[kind]]
    return "\n".join(["| doubt | falls | nobody can know |", "| --- | --- | --- |", *rows, ""])


def _when(line: Line) -> str:
    return f", {line.when}" if line.when else ""


def _taken(line: Line) -> str:
    blocked = f"where it blocks: {_told(line.blocked)}" if line.blocked else ""
    falls = "; ".join(part for part in (_told(line.falls), blocked) if part)
    return f"{falls} | {_told(line.unknown)}"


def _told(names: _Names) -> str:
    """In few words: groups where they are whole, then single metrics."""
    return ", ".join(_parts(names))


_GROUPS = {
    "everything": _EVERYTHING,
    "all but the success rate": _SURVIVORS,
    "every time": _TIMES,
    "every rate": _RATES,
    "the p99 of every time": _P99,
    "the p95 of every time": _P95,
    "tok/s": _TOKENS,
    "foreign metrics": _OTHERS,
}


def _parts(names: _Names) -> Iterator[str]:
    for title, group in _GROUPS.items():
        if group <= names:
            yield title
            names -= group
    yield from (f"`{name}`" for name in CATALOGUE if name in names)
