"""Which doubts forbid a verdict on which metric, and in what words. A doubt that forbids nothing is only shown."""

from collections.abc import Iterable, Mapping, Sequence

from withstand.compare.run import ComparedRun
from withstand.interop.values import number
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.quantiles import samples_needed

_WAITS = frozenset({"ttft", "e2el", "response"})
_DECODE = frozenset({"tpot", "itl"})
_TOKENS = frozenset({"tpot", "output_throughput", "total_token_throughput"})
_RATES = frozenset({
    "request_throughput", "request_goodput", "output_throughput", "input_throughput", "total_token_throughput",
    "output_throughput_per_gpu", "input_throughput_per_gpu", "throughput_per_gpu", "attempts_per_s",
})  # fmt: skip
_WORK = _RATES | {"e2el", "response"}
_TOUCHED: Mapping[DoubtKind, frozenset[str]] = {
    DoubtKind.RATE_NOT_ACHIEVED: _WAITS,
    DoubtKind.LATENCY_GROWS: _WAITS,
    DoubtKind.TOO_SHORT_TO_TELL: _WAITS | _RATES,
    DoubtKind.NOT_STREAMED: frozenset({"ttft"}) | _DECODE,
    DoubtKind.HOP_BUFFERS: frozenset({"ttft"}) | _DECODE,
    DoubtKind.SHARED_READS: frozenset({"itl"}),
    DoubtKind.SEVERAL_TOKENS_AN_EVENT: frozenset({"itl"}),
    DoubtKind.CLAIMED_NOT_COUNTED: _TOKENS,
    DoubtKind.TOKENS_ESTIMATED: _TOKENS,
    DoubtKind.LENGTHS_DIFFER: _WORK,
    DoubtKind.FINISH_REASONS_MIXED: _WORK,
    DoubtKind.PREFIX_CACHE: _WAITS,
    DoubtKind.CONCURRENCY_DISAGREES: _WAITS,
    DoubtKind.TPOT_AGAINST_ITL: _DECODE,
    DoubtKind.EVENTS_AGAINST_TOKENS: _TOKENS | _DECODE,
    DoubtKind.PEAK_BELOW_MEAN: frozenset(),
    DoubtKind.SPEED_NO_THROUGHPUT: _RATES,
    DoubtKind.SUMS_DISAGREE: _RATES,
    DoubtKind.PRINTED_TOO_COARSE: _RATES,
    DoubtKind.SENDS_LATE: _WAITS,
    DoubtKind.CLOCK_LAGGED: frozenset({"ttft"}) | _DECODE,
    DoubtKind.QUEUE_OF_A_BURST: _WAITS,
    DoubtKind.FLAT_THROUGHPUT: _WAITS,
    DoubtKind.LIKE_A_LIMITER: frozenset({"success_rate"}),
    DoubtKind.PARTS_AGAINST_WHOLE: frozenset({"tpot"}),
    DoubtKind.BACKEND_NO_ENGINE: frozenset(),
}
"""Which metrics a doubt is about; one that is not listed touches all."""
_FORBIDS = frozenset({
    DoubtKind.RATE_NOT_ACHIEVED, DoubtKind.LATENCY_GROWS, DoubtKind.TOO_SHORT_TO_TELL, DoubtKind.NOT_STREAMED,
    DoubtKind.HOP_BUFFERS, DoubtKind.CLIENT_LIMIT, DoubtKind.ERROR_TEXT, DoubtKind.IMPOSSIBLE,
})  # fmt: skip
"""With one of these the number is another thing than its name says, whatever its interval."""
_WORK_WITHIN = 0.05
MEDIAN_ANSWER = "output_tokens_p50"
"""A label by which one tool tells how long its answers were."""


def touching(doubts: Iterable[Doubt], key: str, *, n: int | None = None, capped: bool = False) -> tuple[Doubt, ...]:
    """Those that are about a number, such as ``ttft.p99`` over ``n`` answers or ``output_throughput``.

    ``capped``: the client held requests back, so that what counts from the send holds no queue of its making.
    """
    return tuple(doubt for doubt in doubts if _touches(doubt.kind, key, n, capped=capped))


def _touches(kind: DoubtKind, key: str, n: int | None, *, capped: bool) -> bool:
    metric, _, which = key.partition(".")
    if kind is DoubtKind.RATE_NOT_ACHIEVED and capped:
        return metric == "response"
    if kind is DoubtKind.TOO_FEW_SAMPLES:
        return which.startswith("p") and (n is None or n < samples_needed(float(which[1:])))
    if kind is DoubtKind.MEAN_FAR_FROM_MEDIAN:
        return key == "ttft.mean"
    return metric in _TOUCHED.get(kind, {metric})


def forbidding(doubts: Iterable[Doubt]) -> tuple[Doubt, ...]:
    """Those that forbid a verdict."""
    return tuple(doubt for doubt in doubts if doubt.blocking or doubt.kind in _FORBIDS)


def is_other_work(doubts: Iterable[Doubt]) -> bool:
    """Whether what was done is not alike: then no ratio of times or tokens means anything."""
    kinds = (DoubtKind.LENGTHS_DIFFER, DoubtKind.CLAIMED_NOT_COUNTED)
    return any(doubt.blocking and doubt.kind in kinds for doubt in doubts)


def other_work(runs: Sequence[tuple[str, ComparedRun]]) -> Doubt | None:
    """Answers of different length are different work, whatever was asked."""
    lengths = [(label, length) for label, run in runs if (length := _answer_tokens(run))]
    if len(lengths) < 2:
        return None
    shortest, longest = min(lengths, key=_second), max(lengths, key=_second)
    if longest[1] <= shortest[1] * (1 + _WORK_WITHIN):
        return None
    return Doubt(
        DoubtKind.LENGTHS_DIFFER,
        f"{longest[0]} answered with {longest[1]:.1f} tokens a request, {shortest[0]} with {shortest[1]:.1f}: they did "
        "not do the same work.",
        "Prescribe the answers' length (ignore_eos), or compare TTFT and ITL only.",
        blocking=True,
    )


def _second(pair: tuple[str, float]) -> float:
    return pair[1]


def _answer_tokens(run: ComparedRun) -> float | None:
    counted = run.imported.numbers.get("retokenized_output_tokens") if run.imported else None
    total = counted or run.summary.total_output_tokens
    if total and run.summary.completed:
        return total / run.summary.completed
    return number(run.setting.labels.get(MEDIAN_ANSWER))


def other_definition(metric: str, runs: Sequence[tuple[str, ComparedRun]]) -> str | None:
    """Tools that mean different things by one name."""
    notes = {label: _definition(run.notes.get(metric)) for label, run in runs}
    if len(set(notes.values())) < 2:
        return None
    told = "; ".join(f"{label}: {note or 'as defined here'}" for label, note in notes.items())
    return f"{metric} is not defined alike ({told})."


def _definition(note: str | None) -> str | None:
    """Of a note what is about the definition: that a number was computed here does not make it another."""
    return None if note is None or note.startswith(("computed here", "printed as")) else note
