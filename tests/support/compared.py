"""Runs and sides to compare, and the latencies of a queue that everybody knows."""

from collections.abc import Sequence
from random import Random
from typing import Any

from msgspec.structs import replace

from withstand.compare.courses import estimates_of, schedule_of
from withstand.compare.run import ComparedRun, ComparedSide
from withstand.compare.setting import Setting
from withstand.compare.told import told_estimates
from withstand.metrics.context import StageContext
from withstand.metrics.fold import Besides, StageFold, fold_of
from withstand.metrics.summarize import summarize_stage
from withstand.metrics.summary import StageSummary
from withstand.record import Record
from withstand.spec import Poisson, Slo, Stage
from withstand.testing.records import make_record
from withstand.testing.truth.schedule import Schedule

SETTING = Setting(rate=5.0, arrivals="poisson", model="some/model", dataset="random", client="withstand")


def queue(n: int, load: float, seed: object, *, schedule: object = None, warm: int = 500) -> list[float]:
    """Latencies of a queue with one server, Poisson arrivals and lognormal work of mean 1."""
    arrivals, work = Random(f"arrivals {schedule if schedule is not None else seed}"), Random(f"work {seed}")
    waiting, found = 0.0, []
    for i in range(n + warm):
        took = work.lognormvariate(-0.125, 0.5)
        if i >= warm:
            found.append(waiting + took)
        waiting = max(0.0, waiting + took - arrivals.expovariate(load))
    return found


def records_of(ttfts_ms: Sequence[float], *, rate_rps: float = 5.0, tokens: int = 4) -> list[Record]:
    """One record a latency, sent at even distances."""
    return [
        make_record(i, Schedule(ttft_ms=ttft, itl_ms=10, tokens=tokens), sent_ms=i * 1000 / rate_rps)
        for i, ttft in enumerate(ttfts_ms)
    ]


def stage(records: Sequence[Record], *, rate_rps: float = 5.0) -> StageSummary:
    context = StageContext(stage=Stage(name="stage", arrivals=Poisson(rate_rps), num_prompts=len(records)))
    return summarize_stage(records, context)


def courses_of(records: Sequence[Record]) -> StageFold:
    """As they are read for a comparison."""
    return fold_of(records, Slo(), Besides(courses=True))


def run_of(records: Sequence[Record], *, facts: bool = True, **setting: Any) -> ComparedRun:
    """As it comes from a run folder; without facts as from somebody's table."""
    summary = replace(stage(records), doubts=(), facts=facts)
    estimates = told_estimates(summary)
    fold = courses_of(records)
    return ComparedRun(
        source="somewhere",
        setting=replace(SETTING, **setting),
        summary=summary,
        estimates=estimates | estimates_of(fold, summary) if facts else estimates,
        schedule=schedule_of(fold, summary) if facts else None,
    )


def side_of(label: str, *runs: ComparedRun) -> ComparedSide:
    return ComparedSide(label=label, sources=(label,), tool="withstand", runs=runs)
