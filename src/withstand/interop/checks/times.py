"""Doubts about times: what cannot be, what few samples cannot tell, what a median contradicts."""

from collections.abc import Iterator
from itertools import pairwise

from withstand.interop.checks.words import said, stat, typical
from withstand.interop.shape import ImportedRun, Stats
from withstand.interop.terms import unit_of
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.quantiles import samples_needed
from withstand.metrics.rounding import counted, percent

_NAMES = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL"}
_BELOW = 0.999
_SKEWED = 2.0
_APART = 1.5
_BURST = 0.1
_SAME_WITHIN = 0.02
_SHORT_DECODE = 0.5
_HALF_A_DIGIT_MS = 0.1


def impossible(run: ImportedRun) -> Doubt | None:
    """An order that no measurement has."""
    faults = [*_below_ttft(run), *_disordered(run), *_more_than_sent(run)]
    if not faults:
        return None
    more = f" ({len(faults) - 1} more of the kind.)" if len(faults) > 1 else ""
    return Doubt(
        DoubtKind.IMPOSSIBLE,
        f"{faults[0]}, which cannot be: a unit is wrong, or the report was edited.{more}",
        "Do not use the numbers before the tool's own file has been seen.",
        blocking=True,
    )


def _below_ttft(run: ImportedRun) -> Iterator[str]:
    for which in ("mean", "p50", "p90", "p99"):
        whole, first = stat(run, "e2el", which), stat(run, "ttft", which)
        if whole is not None and first is not None and whole < first * _BELOW:
            yield f"E2EL {which} of {said(whole)} ms is below TTFT {which} of {said(first)} ms"


def _disordered(run: ImportedRun) -> Iterator[str]:
    for name, stats in run.stats.items():
        marks = list(_ordered(stats))
        for (low_name, low), (high_name, high) in pairwise(marks):
            if high < low * _BELOW - 1e-9 and low > 0:
                unit = unit_of(name)
                shown = _NAMES.get(name, name)
                yield f"{shown} {high_name} of {said(high)} {unit} is below {low_name} of {said(low)} {unit}"


def _ordered(stats: Stats) -> Iterator[tuple[str, float]]:
    if stats.min is not None:
        yield "min", stats.min
    yield from sorted(stats.percentiles.items(), key=lambda item: float(item[0][1:]))
    if stats.max is not None:
        yield "max", stats.max


def _more_than_sent(run: ImportedRun) -> Iterator[str]:
    completed, attempted = run.numbers.get("completed"), run.numbers.get("attempted")
    attempted = attempted if attempted is not None else run.conditions.num_prompts
    if completed is not None and attempted is not None and completed > attempted:
        yield f"{said(completed)} requests were completed of {said(attempted)} sent"


def tpot_against_itl(run: ImportedRun) -> Doubt | None:
    """Both are times between tokens; far apart, one counts something else."""
    tpot, itl = stat(run, "tpot"), stat(run, "itl")
    if not tpot or not itl or max(tpot, itl) < _APART * min(tpot, itl):
        return None
    if itl > tpot:
        why = "a chunk brings several tokens, so ITL is the time between chunks"
    else:
        why = "answers' lengths are miscounted or very uneven: TPOT divides by the tokens claimed, ITL by nothing"
    return Doubt(
        DoubtKind.TPOT_AGAINST_ITL,
        f"Mean TPOT {said(tpot)} ms against mean ITL {said(itl)} ms ({said(max(tpot, itl) / min(tpot, itl))}x): {why}.",
        "Compare TPOT with TPOT and ITL with ITL, and only between runs where the two agree.",
        brief=f"{said(tpot)} against {said(itl)} ms",
    )


def mean_far_from_median(run: ImportedRun) -> Doubt | None:
    """A mean that few requests have made."""
    mean, median = stat(run, "ttft"), stat(run, "ttft", "p50")
    if mean is None or not median or mean < _SKEWED * median:
        return None
    return Doubt(
        DoubtKind.MEAN_FAR_FROM_MEDIAN,
        f"Mean TTFT {said(mean)} ms is {mean / median:.1f} times its median of {said(median)} ms: a part of the "
        "requests waited, the others did not.",
        "Report both, or the percentiles; the mean describes neither part.",
        brief=f"{said(mean)} ms, {mean / median:.1f} times {said(median)}",
    )


def hop_buffers(run: ImportedRun) -> Doubt | None:
    """Events that come in bursts: their median gap is nearly nothing."""
    itl, tpot = stat(run, "itl", "p50"), typical(run, "tpot")
    if itl is None:
        return None
    if (tpot is None and itl > 0) or (tpot is not None and itl >= _BURST * tpot):
        return None
    beside = f" beside a TPOT of {said(tpot)} ms" if tpot is not None else ""
    return Doubt(
        DoubtKind.HOP_BUFFERS,
        f"The median ITL is {said(itl)} ms{beside}: the events come in bursts, which a hop between, or the engine, "
        "has held back.",
        "Use TPOT; the percentiles of this ITL are those of the bursts.",
        brief=f"{said(itl)} ms{beside.replace(' a TPOT of', '')}",
    )


def not_streamed(run: ImportedRun) -> Doubt | None:
    """The time after the first token is the same for fast and slow requests, and short."""
    tails = [
        (which, whole - first)
        for which in ("p50", "p90", "p99")
        if (whole := stat(run, "e2el", which)) is not None and (first := stat(run, "ttft", which)) is not None
    ]
    whole = stat(run, "e2el", tails[0][0]) if tails else None
    if len(tails) < 2 or not whole:
        return None
    low, high = min(t for _, t in tails), max(t for _, t in tails)
    if low <= 0 or high - low > _SAME_WITHIN * high + _HALF_A_DIGIT_MS or high > _SHORT_DECODE * whole:
        return None
    shown = ", ".join(f"{said(tail)} ms at {which}" for which, tail in tails)
    return Doubt(
        DoubtKind.NOT_STREAMED,
        f"E2EL - TTFT is the same however long a request takes: {shown}. The answer is as long for all, or comes in "
        "one piece, as an error text does.",
        "Look at an answer.",
        brief=f"{said(high)} ms",
    )


def too_few_samples(run: ImportedRun) -> Doubt | None:
    """A p99 needs hundreds of answers."""
    n = run.numbers.get("completed")
    shown = [p for name in ("ttft", "tpot", "e2el") if name in run.stats for p in run.stats[name].percentiles]
    whole = [int(p[1:]) for p in shown if p[1:].isdecimal() and 50 <= int(p[1:]) < 100]
    if not n or not whole or n >= samples_needed(max(whole)):
        return None
    highest = max(whole)
    needed = samples_needed(highest)
    return Doubt(
        DoubtKind.TOO_FEW_SAMPLES,
        f"The p{highest} of {counted(int(n), 'request')} is not known: {percent(100 - highest, 100)} of them are "
        f"{said(n * (100 - highest) / 100)}, and its 95 % interval has an upper end from {needed} on "
        f"(1 - {highest / 100:g}^{needed} = {percent(1 - (highest / 100) ** needed)}).",
        "Compare medians, or send more requests.",
    )


RULES = (impossible, tpot_against_itl, mean_far_from_median, hop_buffers, not_streamed, too_few_samples)
