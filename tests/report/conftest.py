"""A run that looks like a real one: a seeded server whose tokens slow down with its load, in three phases."""

import heapq
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from withstand.metrics.context import StageContext
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.series import StageSeries, stage_series
from withstand.metrics.summarize import summarize, summarize_stage
from withstand.metrics.summary import Summary
from withstand.record import Clock, Health, Record, Spread, Status, TokensFrom
from withstand.report.about import About
from withstand.spec import Plan, Poisson, Slo, Stage, Target, Workload

MS = 1_000_000
SLOTS = 16
SNAPSHOTS = Path(__file__).parent / "snapshots"


class Sample(msgspec.Struct, frozen=True):
    """All that an exporter may be given."""

    summary: Summary
    series: tuple[StageSeries, ...]
    about: About


STAGES = (
    *(
        Stage(name=f"prompt-{n}", phase="baseline", max_concurrency=1, num_prompts=40, workload=_w)
        for n, _w in [(n, Workload(options={"input_len": n, "output_len": 32})) for n in (32, 64, 128, 256, 512)]
    ),
    *(
        Stage(name=f"concurrency-{c}", phase="concurrency", max_concurrency=c, num_prompts=60 * c)
        for c in (1, 2, 4, 8, 16)
    ),
    *(Stage(name=f"rate-{r:g}", phase="sustained", arrivals=Poisson(r), num_prompts=round(60 * r)) for r in (4, 8, 11)),
)


HEALTH = Health(
    worker=0,
    sent=1,
    finished=1,
    wall_ns=60_000 * MS,
    cpu_ns=2_400 * MS,
    runqueue_wait_ns=150 * MS,
    forced_switches=310,
    rss_bytes_max=48 << 20,
    lag=Spread(n=15_360, p50_ns=21_503, p99_ns=96_255, max_ns=4 * MS),
    loop_stall_ns_max=4 * MS,
    loop_stalls=12,
    loop_stall_ns=25 * MS,
    gc_pauses=3,
    gc_pause_ns=5 * MS,
    gc_pause_ns_max=2 * MS,
    reads=15_360,
    descriptor_limit=65_536,
    descriptors_max=39,
    connections_max=32,
    dials=32,
    ports=28_232,
    clock_steps=0,
    clock_width_ns=140,
)


def records_of(stage: Stage, seed: str) -> Iterator[Record]:
    """A queue before SLOTS slots: prefill in proportion to the prompt, tokens slower the more slots are taken."""
    rng = random.Random(seed)
    prompt = (stage.workload or Workload(options={"input_len": 128})).options["input_len"]
    rate = stage.arrivals.rate if isinstance(stage.arrivals, Poisson) else None
    busy: list[float] = []
    users = [0.0] * (stage.max_concurrency or 0)
    due = 0.0
    for i in range(stage.num_prompts or 0):
        due = due + rng.expovariate(rate) if rate else heapq.heappop(users)
        while busy and (busy[0] <= due or len(busy) >= SLOTS):
            begin = max(due, heapq.heappop(busy))
        begin = max(due, begin) if len(busy) == SLOTS - 1 and rate else due
        record, end = one_record(i, (due, begin), (prompt, len(busy) + 1), scheduled=rate is not None, rng=rng)
        heapq.heappush(busy, end)
        heapq.heappush(users, end)
        yield record


def one_record(
    i: int, at: tuple[float, float], load: tuple[int, int], *, scheduled: bool, rng: random.Random
) -> tuple[Record, float]:
    """Times in s; (due, begin of work), (prompt tokens, requests in work)."""
    (due, begin), (prompt, busy) = at, load
    step = 0.011 + 0.0022 * busy
    now = begin + 0.014 + prompt * 0.00021 + rng.gammavariate(2, 0.0015 * busy)
    sent_ns = round((due + abs(rng.gauss(0.00004, 0.00003))) * 1e9)
    arrivals = [round(now * 1e9)]
    for _ in range(31):
        now += step * rng.lognormvariate(0, 0.12) * (4 if rng.random() < 0.004 else 1)
        arrivals.append(round(now * 1e9))
    failed = busy > 12 and rng.random() < 0.03
    record = Record(
        id=i,
        stage=0,
        status=Status.TRUNCATED if failed else Status.OK,
        scheduled_ns=round(due * 1e9) if scheduled else None,
        ready_ns=round(due * 1e9),
        started_ns=sent_ns - 10_000,
        sent_ns=sent_ns,
        first_byte_ns=arrivals[0],
        chunk_ns=arrivals[:9] if failed else arrivals,
        end_ns=arrivals[8] if failed else arrivals[-1],
        prompt_tokens=prompt,
        output_tokens=None if failed else 32,
        requested_output_tokens=32,
        tokens_from=None if failed else TokensFrom.SERVER,
        finish_reason=None if failed else "length",
        http_status=200,
        error="the stream ended before [DONE] </script><b>" if failed else None,
        clock=Clock.KERNEL,
        text_head="The lighthouse keeper had",
    )
    return record, now


def sample_of(stages: tuple[Stage, ...], *, complete: bool = True) -> Sample:
    slo = Slo(ttft=500.0, tpot=60.0)
    contexts = [StageContext(stage=stage, goodput=slo, health=(HEALTH,)) for stage in stages]
    facts = [list(records_of(stage, stage.name)) for stage in stages]
    summary = summarize(
        [summarize_stage(records, context) for records, context in zip(facts, contexts, strict=True)],
        backend="openai-chat",
        model_id="SmolLM2-135M-Instruct",
        target="http://127.0.0.1:8080",
        complete=complete,
    )
    series = tuple(stage_series(records, context) for records, context in zip(facts, contexts, strict=True))
    return Sample(summary, series, about_of(stages))


def about_of(stages: tuple[Stage, ...]) -> About:
    plan = Plan(target=Target(base_url="http://127.0.0.1:8080"), stages=stages, goodput=Slo(ttft=500.0, tpot=60.0))
    return About(
        title="SmolLM2-135M-Instruct",
        created_utc="2026-11-28T03:04:05Z",
        version="0.1.0",
        plan=msgspec.to_builtins(plan),
        machine={"system": "Linux 6.12", "cpu": "AMD EPYC 9B14", "cores": "2", "memory": "7.8 GiB"},
        engine="llama.cpp b7100, threads 2",
    )


@pytest.fixture(scope="session")
def sample() -> Sample:
    return sample_of(STAGES)


@pytest.fixture(scope="session")
def single() -> Sample:
    """One stage without a phase, nothing to doubt but the number of samples."""
    return sample_of((Stage(name="rate-4", arrivals=Poisson(4.0), num_prompts=120),))


@pytest.fixture(scope="session")
def fallen(single: Sample) -> Sample:
    """A run that was cut, with a doubt that blocks, and text from outside that would like to be markup."""
    blocking = Doubt(
        DoubtKind.CLIENT_BOUND,
        "Worker 0 used 97 % of a core: [red]the client[/red] was <b>at its own limit</b>\x1b[31m | `x`.",
        "Use more workers.",
        blocking=True,
    )
    stage = msgspec.structs.replace(single.summary.stages[0], name="=1+1", doubts=(blocking,))
    summary = msgspec.structs.replace(single.summary, stages=(stage,), complete=False)
    series = msgspec.structs.replace(single.series[0], name="=1+1")
    return Sample(summary, (series,), single.about)


@pytest.fixture
def matches() -> Callable[[str, str], None]:
    """Compare a text with a file of ``snapshots``; WITHSTAND_UPDATE_SNAPSHOTS=1 writes it anew."""

    def compare(name: str, text: str) -> None:
        path = SNAPSHOTS / name
        if os.environ.get("WITHSTAND_UPDATE_SNAPSHOTS"):
            path.write_bytes(text.encode())
        assert text == path.read_bytes().decode(), f"{name} differs; WITHSTAND_UPDATE_SNAPSHOTS=1 writes it anew"

    return compare
