"""Imported runs and our own stages → subjects: the numbers that people quote, by claim.

The median is quoted where it is told, else the mean. A speed of single requests stands where a throughput should, so
that it can fall there.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from withstand.audit.shape import Claim, Subject, Value
from withstand.interop.checks import joint_doubts, run_doubts
from withstand.interop.checks.words import asked, series_of
from withstand.interop.shape import ImportedRun, Stats
from withstand.metrics.reach import Circumstances, circumstances_of
from withstand.metrics.summary import Distribution, StageSummary

_TIMES = {Claim.TTFT: "ttft", Claim.TPOT: "tpot", Claim.ITL: "itl", Claim.E2EL: "e2el"}
_MS, _REQUESTS, _TOKENS, _PERCENT = "ms", "req/s", "tok/s", "%"
_WHOLE = 100.0


def of_imports(runs: Sequence[ImportedRun], names: Sequence[str]) -> Iterator[Subject]:
    """A stranger's runs, each with what those of its series show together."""
    series: dict[str | None, list[ImportedRun]] = {}
    for run in runs:
        series.setdefault(series_of(run), []).append(run)
    joint = {name: joint_doubts(members) for name, members in series.items()}
    for run, name in zip(runs, names, strict=True):
        yield msgspec.structs.replace(_of_import(run, name), joint=joint[series_of(run)])


def _of_import(run: ImportedRun, name: str) -> Subject:
    completed = run.numbers.get("completed")
    values = dict(_times(run.stats)) | dict(_rates(run.numbers, run.stats))
    success = _success(run)
    if success is not None:
        values[Claim.SUCCESS] = success
    tpot = values.get(Claim.TPOT)
    return Subject(
        name=name,
        n=None if completed is None else int(completed),
        circumstances=Circumstances(
            capped=run.conditions.max_concurrency is not None,
            tpot_ms=tpot.value if tpot else None,
            missing_share=1 - success.value / _WHOLE if success else None,
        ),
        values=values,
        doubts=run_doubts(run),
    )


def _success(run: ImportedRun) -> Value | None:
    """Of those that were asked for, else of those that are told of."""
    completed, failed, wanted = run.numbers.get("completed"), run.numbers.get("failed"), asked(run)
    if wanted is None and failed is not None:
        wanted = failed + (completed or 0)
    return Value(_WHOLE * completed / wanted, "", _PERCENT) if wanted and completed is not None else None


def of_stage(stage: StageSummary) -> Subject:
    """One of our own."""
    spreads = {"ttft": stage.ttft, "tpot": stage.tpot, "itl": stage.itl, "e2el": stage.e2el}
    rates = {"request_throughput": stage.request_throughput, "output_throughput": stage.output_throughput}
    known = {name: rate for name, rate in rates.items() if rate is not None}
    values = dict(_times(spreads)) | dict(_rates(known, {}))
    if stage.success_rate is not None:
        values[Claim.SUCCESS] = Value(_WHOLE * stage.success_rate, "", _PERCENT)
    return Subject(
        name=stage.name,
        n=stage.completed,
        circumstances=circumstances_of(stage),
        values=values,
        doubts=stage.doubts,
    )


def _times(stats: Mapping[str, Stats] | Mapping[str, Distribution]) -> Iterator[tuple[Claim, Value]]:
    for claim, name in _TIMES.items():
        value = _typical(stats.get(name))
        if value is not None:
            yield claim, value
    tail = stats["ttft"].percentiles.get("p99") if "ttft" in stats else None
    if tail is not None:
        yield Claim.TTFT_P99, Value(tail, "p99", _MS)


def _typical(stats: Stats | Distribution | None) -> Value | None:
    if stats is None:
        return None
    told = {"p50": stats.percentiles.get("p50"), "mean": stats.mean, "p90": stats.percentiles.get("p90")}
    return next((Value(value, which, _MS) for which, value in told.items() if value is not None), None)


def _rates(numbers: Mapping[str, float], stats: Mapping[str, Stats]) -> Iterator[tuple[Claim, Value]]:
    if "request_throughput" in numbers:
        yield Claim.REQUESTS, Value(numbers["request_throughput"], "", _REQUESTS)
    speed = _typical(stats.get("speed_per_request"))
    if "output_throughput" in numbers:
        yield Claim.TOKENS, Value(numbers["output_throughput"], "", _TOKENS)
    elif speed is not None:
        yield Claim.TOKENS, Value(speed.value, "each", _TOKENS)
