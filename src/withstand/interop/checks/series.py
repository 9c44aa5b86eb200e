"""Doubts that show only along a series of runs: over loads, and between two ways to count."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from withstand.interop.checks.words import asked, said, series_of, stat, typical
from withstand.interop.shape import ImportedRun
from withstand.metrics.doubts import Doubt, DoubtKind

_RUNS_MIN = 3
_FLAT_WITHIN = 0.1
_TWICE = 2.0
_TAIL_WITHIN = 0.1
_TAIL_RUNS_MIN = 4


class _Level(msgspec.Struct, frozen=True):
    """One load of a series."""

    cap: int
    throughput: float
    ttft_ms: float


def flat_throughput(runs: Sequence[ImportedRun]) -> Doubt | None:
    """More at once, no more work done, and a longer wait: the server was full from the beginning."""
    for levels in _levels(runs).values():
        first, last = levels[0], levels[-1]
        made = [level.throughput for level in levels]
        if len(levels) < _RUNS_MIN or last.cap < _TWICE * first.cap or last.ttft_ms < _TWICE * first.ttft_ms:
            continue
        if max(made) <= min(made) * (1 + _FLAT_WITHIN):
            return Doubt(
                DoubtKind.FLAT_THROUGHPUT,
                f"From {first.cap} to {last.cap} at once the output stays {said(min(made))} to {said(max(made))} tok/s,"
                f" while TTFT goes from {said(first.ttft_ms)} to {said(last.ttft_ms)} ms: the server works on no more "
                f"than it did at {first.cap}, and TTFT is the length of its queue.",
                "Look for a limit of one request at a time before the engine; higher levels say nothing of it.",
            )
    return None


def _levels(runs: Sequence[ImportedRun]) -> Mapping[object, list[_Level]]:
    """By file and what was measured, in the order of the load; without runs that lost requests."""
    found: dict[object, list[_Level]] = defaultdict(list)
    for run in runs:
        cap, made, ttft = run.conditions.max_concurrency, run.numbers.get("output_throughput"), typical(run, "ttft")
        whole = run.numbers.get("completed") == asked(run)
        if cap and made and ttft and whole and run.conditions.arrivals == "inf":
            found[run.source.file, run.conditions.model, series_of(run)].append(_Level(cap, made, ttft))
    return {key: sorted(levels, key=lambda level: level.cap) for key, levels in found.items()}


def speed_beside_throughput(runs: Sequence[ImportedRun]) -> Doubt | None:
    """Two meanings of tok/s in one table."""
    made = [run.numbers["output_throughput"] for run in runs if "output_throughput" in run.numbers]
    known = [typical(run, "speed_per_request") for run in runs if "output_throughput" not in run.numbers]
    speeds = [speed for speed in known if speed is not None]
    if not made or not speeds:
        return None
    return Doubt(
        DoubtKind.SPEED_BESIDE_THROUGHPUT,
        f"{_span(speeds)} tok/s are means of single requests' speeds, {_span(made)} tok/s are what a server put out: "
        "the first stays the same under load, the second grows with it.",
        "Never put both into one column; ask for output tokens / duration of all.",
        blocking=True,
    )


def _span(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return said(low) if low == high else f"{said(low)} to {said(high)}"


def same_tail(runs: Sequence[ImportedRun]) -> Doubt | None:
    """Whatever the load, the time after the first token is the same."""
    by_file: dict[object, list[tuple[float, float]]] = defaultdict(list)
    for run in runs:
        whole, first = stat(run, "e2el", "p90"), stat(run, "ttft", "p90")
        if whole is not None and first is not None and run.numbers.get("completed") != 0:
            by_file[run.source.file, series_of(run)].append((first, whole - first))
    for pairs in by_file.values():
        firsts, tails = [first for first, _ in pairs], [tail for _, tail in pairs]
        spread = max(firsts) >= _TWICE * min(firsts) and max(firsts) > max(tails)
        if len(pairs) >= _TAIL_RUNS_MIN and spread and 0 < max(tails) <= min(tails) * (1 + _TAIL_WITHIN):
            return Doubt(
                DoubtKind.NOT_STREAMED,
                f"E2EL - TTFT (p90) is {_span(tails)} ms in all {len(pairs)} runs, while TTFT goes from "
                f"{said(min(firsts))} to {said(max(firsts))} ms: no engine decodes at the same speed under every load. "
                "A hop waited for the whole answer, or for an error, and played it at its own pace.",
                "Read one answer: TTFT here is the time of a whole answer, tok/s is the pace of the play.",
                blocking=True,
            )
    return None


def backend_no_engine(runs: Sequence[ImportedRun]) -> Doubt | None:
    """The field that sounds like the engine is the client's dialect."""
    engines = list(dict.fromkeys(run.conditions.engine for run in runs if run.conditions.engine))
    told = [run.conditions.backend for run in runs if run.conditions.backend]
    if len(engines) < 2 or len(set(told)) != 1:
        return None
    return Doubt(
        DoubtKind.BACKEND_NO_ENGINE,
        f"“backend” is {told[0]} in every run: it names how the client spoke, not what was measured. That stands in "
        f"{_label(runs)}: {', '.join(engines)}.",
        "Group by the label; by “backend” these would be one engine.",
    )


def _label(runs: Sequence[ImportedRun]) -> str:
    """The field of the author's own that has the engine."""
    named = [{k for k, v in run.conditions.labels.items() if v == run.conditions.engine} for run in runs]
    shared = sorted(set[str]().union(*named).intersection(*named))
    return f"“{shared[0]}”" if shared else "the author's own label"


RULES = (speed_beside_throughput, same_tail, flat_throughput, backend_no_engine)
