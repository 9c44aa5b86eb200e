"""``calibrate``: the search, the errors against the log, what is kept, and what a run is told beforehand."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrating import make_calibration, make_step
from withstand.app.calibrate import calibrate
from withstand.app.calibration import bench, foresight, store
from withstand.app.calibration.demand import Demand, demand_of
from withstand.app.calibration.errors import itl_errors_ns, ttft_errors_ns
from withstand.app.calibration.foresight import Foresight, foresee
from withstand.app.calibration.search import next_rate
from withstand.app.run import run
from withstand.app.screen import StageProgress
from withstand.errors import MeasureError
from withstand.load.null import Served
from withstand.metrics.calibration import Capacity, Step, Verdict, best
from withstand.metrics.summary import StageSummary
from withstand.record import Record, Status
from withstand.runs import RunFolder
from withstand.spec import Constant, Inf, Plan, Poisson, Ramp, Stage, StepPart, Target, Workload
from withstand.spec import Step as StepArrivals
from withstand.testing import Schedule, TruthServer

MS = 1_000_000
FIRST = 8_000.0
CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


class Said:
    """A screen that only listens."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.steps: list[str] = []

    def message(self, text: str) -> None:
        self.messages.append(text)

    def step(self, label: str, done: int, total: int | None) -> None:
        self.steps.append(label)

    def opened(self, folder: Path) -> None: ...

    def stage_started(self, name: str, phase: str | None, index: int | None, of: int) -> None: ...

    def stage_progress(self, progress: StageProgress) -> None: ...

    def stage_finished(self, summary: StageSummary) -> None: ...


@pytest.fixture(autouse=True)
def cores_are_left_as_they_were() -> Iterator[None]:
    yield
    if CORES:
        assert os.sched_getaffinity(0) == CORES


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("WITHSTAND_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


# The search.


def searched(step_at: Callable[[float], Step]) -> list[Step]:
    steps: list[Step] = []
    while (rate := next_rate(steps, FIRST)) is not None:
        steps.append(step_at(rate))
        assert len(steps) < 40
    return steps


@given(st.floats(1_000, 500_000), st.floats(0, 0.5))
def test_the_search_ends_close_below_any_limit(limit: float, saving: float) -> None:
    """``saving``: how much cheaper a token is at the limit than at the first rate."""

    def step_at(rate: float) -> Step:
        cost = 1 - saving * min(1, rate / limit)
        return make_step(rate, cpu_share=0.9 * rate / limit * cost / (1 - saving))

    steps = searched(step_at)
    top = best(steps, streamed=True)
    assert top is not None
    assert limit * 0.85 <= top.load.rate <= limit
    assert len(steps) <= 12


def test_what_was_disturbed_is_tried_again_and_then_believed() -> None:
    disturbed = make_step(FIRST, late_p99_ns=60 * MS)
    assert disturbed.verdict is Verdict.DISTURBED
    assert next_rate([disturbed], FIRST) == FIRST
    assert next_rate([disturbed, make_step(FIRST)], FIRST) == 4 * FIRST
    assert next_rate([disturbed] * 3, FIRST) == FIRST / 2


def test_a_client_that_carries_nothing_is_not_searched_for_ever() -> None:
    assert best(searched(lambda rate: make_step(rate, failed=1)), streamed=True) is None


def test_a_null_server_at_its_limit_bounds_the_search_too() -> None:
    steps = searched(lambda rate: make_step(rate, cpu_share=rate / 1e6, server_share=rate / 100_000))
    assert 75_000 <= max(s.load.rate for s in steps if s.verdict is Verdict.GOOD) < 90_000


# Errors against the log.


def answer(chunk_ns: list[int], sent_ns: int = 0) -> Record:
    return Record(id=5, stage=0, status=Status.OK, sent_ns=sent_ns, chunk_ns=chunk_ns)


@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=20, unique=True), st.integers(0, 10**6))
def test_a_constant_delay_is_no_error_of_a_gap_but_one_of_the_first_token(writes: list[int], delay_ns: int) -> None:
    began_ns = sorted(writes)
    log = {5: Served(5, 0, began_ns, began_ns)}
    record = answer([ns + delay_ns for ns in began_ns])
    assert set(itl_errors_ns([record], log)) == {0}
    assert list(ttft_errors_ns([record], log)) == [delay_ns]


def test_one_late_stamp_spoils_the_gaps_on_both_sides() -> None:
    log = {5: Served(5, 0, [10, 20, 30, 40], [10, 20, 30, 40])}
    assert list(itl_errors_ns([answer([10, 27, 30, 40])], log)) == [7, 7, 0]


def test_nobody_is_judged_by_a_write_that_was_interrupted() -> None:
    log = {5: Served(5, 0, [MS, 2 * MS, 3 * MS, 4 * MS], [MS, 9 * MS, 3 * MS, 4 * MS])}
    assert list(itl_errors_ns([answer([MS, 8 * MS, 3 * MS, 4 * MS])], log)) == [0]
    log = {5: Served(5, 0, [MS, 2 * MS], [9 * MS, 9 * MS])}
    assert list(ttft_errors_ns([answer([8 * MS, 9 * MS])], log)) == []


# What is kept.


def test_a_calibration_is_kept_for_this_machine_and_version(cache: Path) -> None:
    assert store.kept() is None
    calibration = make_calibration()
    assert store.keep(calibration) == cache / "calibration.json"
    assert store.kept() == calibration


@pytest.mark.parametrize("fact", ["cpu", "cores", "withstand"])
def test_another_machines_is_none(fact: str) -> None:
    calibration = make_calibration()
    store.keep(make_calibration(machine={**calibration.machine, fact: "another"}))
    assert store.kept() is None


def test_the_limit_of_open_files_makes_no_other_machine() -> None:
    calibration = make_calibration()
    store.keep(make_calibration(machine={**calibration.machine, "open files": "7"}))
    assert store.kept() is not None


def test_a_damaged_or_impossible_cache_is_none(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.keep(make_calibration())
    (cache / "calibration.json").write_text('{"version": "0"')
    assert store.kept() is None
    monkeypatch.setenv("WITHSTAND_CACHE", str(cache / "calibration.json" / "below"))
    assert store.keep(make_calibration()) is None
    assert store.kept() is None


# What a plan asks for.

WORKLOAD = Workload(options={"output_len": 100})


@pytest.mark.parametrize(
    ("stage", "streamed", "demand"),
    [
        (Stage(arrivals=Poisson(50)), True, Demand(streamed=True, rate_rps=50, tokens_per_s=5_000)),
        (Stage(arrivals=Poisson(50)), False, Demand(streamed=False, rate_rps=50)),
        (Stage(arrivals=Ramp(1, 80, 9)), True, Demand(streamed=True, rate_rps=80, tokens_per_s=8_000)),
        (
            Stage(arrivals=StepArrivals((StepPart(5, 1), StepPart(70, 1), StepPart(0, 1)))),
            True,
            Demand(streamed=True, rate_rps=70, tokens_per_s=7_000),
        ),
        (Stage(arrivals=Inf(), max_concurrency=600), True, Demand(streamed=True, streams=600)),
        (
            Stage(arrivals=Poisson(5), workload=Workload(dataset="sharegpt")),
            True,
            Demand(streamed=True, rate_rps=5),
        ),
        (
            Stage(arrivals=Poisson(5), workload=Workload()),
            True,
            Demand(streamed=True, rate_rps=5, tokens_per_s=5 * 128),
        ),
    ],
)
def test_a_stage_tells_its_demand_as_far_as_it_can(stage: Stage, streamed: bool, demand: Demand) -> None:
    workload = stage.workload or WORKLOAD
    whole = Stage(arrivals=stage.arrivals, max_concurrency=stage.max_concurrency, workload=workload)
    assert demand_of(whole, streamed=streamed) == demand


def test_nothing_is_concluded_from_what_is_not_known() -> None:
    only_tokens = Capacity(tokens_per_s=40_000, streams=400, tokens=64)
    assert Demand(streamed=True, rate_rps=3_000).workers(only_tokens) is None
    assert Demand(streamed=False, rate_rps=30_000).workers(only_tokens) is None
    assert Demand(streamed=True, rate_rps=1_000, tokens_per_s=100_000).workers(only_tokens) == 3
    assert Demand(streamed=True, streams=1_000).workers(only_tokens) == 3


# What a run is told.


def stage_of(rate: float, name: str = "s") -> Stage:
    return Stage(name=name, arrivals=Constant(rate), workload=WORKLOAD)


def never(*_: object) -> Any:
    raise AssertionError


def test_a_light_plan_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foresight, "_look", never)
    monkeypatch.setattr(foresight, "kept", never)
    seen = foresee(Plan(), [stage_of(50)], Said())
    assert seen.workers(stage_of(50)) is None
    assert seen.advice(stage_of(50), 1, 2) is None


def test_a_heavy_plan_goes_by_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foresight, "_look", never)
    store.keep(make_calibration())
    seen = foresee(Plan(), [stage_of(600)], Said())
    assert seen.workers(stage_of(600)) == 2
    assert seen.advice(stage_of(600), 2, 2) == (
        "Stage s asks for about 60,000 tokens/s, and one worker here is good for about 40,000: 2 workers are enough."
    )
    assert seen.advice(stage_of(600), 1, 2) == (
        "Stage s asks for about 60,000 tokens/s, and one worker here is good for about 40,000: use --workers 2."
    )
    assert seen.advice(stage_of(2_000), 2, 2) == (
        "Stage s asks for about 200,000 tokens/s, and one worker here is good for about 40,000; it needs 5 of them, "
        "and this machine has 2 cores: the client may be the limit."
    )


def test_other_demands_are_told_in_their_own_words() -> None:
    capacity = make_calibration().capacity
    closed = Stage(name="c", max_concurrency=1_000, workload=WORKLOAD)
    assert "1,000 answers at once, and one worker here is good for about 400:" in str(
        Foresight(capacity).advice(closed, 1, 4)
    )
    short = Foresight(capacity, streamed=False)
    assert "15,000 requests/s, and one worker here is good for about 10,000:" in str(
        short.advice(stage_of(15_000), 1, 4)
    )


@pytest.mark.parametrize("streamed", [True, False])
def test_without_a_calibration_a_short_look_is_taken(streamed: bool) -> None:
    said = Said()
    seen = foresee(Plan(target=Target(stream=streamed)), [stage_of(5_000)], said)
    workers = seen.workers(stage_of(1_000_000))
    assert (workers is None) == any("cannot be told now" in m for m in said.messages)
    assert workers is None or workers > 1
    assert len(set(said.steps)) == 1


def looked(monkeypatch: pytest.MonkeyPatch, step: Step) -> tuple[Foresight, Said]:
    """What follows where the look has seen this."""
    monkeypatch.setattr(foresight, "_look", lambda *_, **__: step)
    said = Said()
    return foresee(Plan(), [stage_of(600)], said), said


def test_a_look_says_no_more_than_one_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, said = looked(monkeypatch, make_step(20_000, cpu_share=0.217, waited_share=0.01))
    assert seen.advice(stage_of(600), 1, 2) == (
        "Stage s asks for about 60,000 tokens/s, and one worker here is good for about 80,000 by a quick look: "
        "1 worker is enough."
    )
    assert said.messages == []


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"late_p99_ns": 60 * MS}, "other programs had the cores"),
        ({"waited_share": 0.4}, "other programs had the cores"),
        ({"server_share": 1.0}, "the null server was at its own limit"),
        ({"events": 0}, "the null server or a worker did not come up"),
    ],
)
def test_a_look_that_was_disturbed_claims_nothing(
    monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any], why: str
) -> None:
    seen, said = looked(monkeypatch, make_step(20_000, **facts))
    assert seen.workers(stage_of(600)) is None
    assert said.messages == [f"What this client can carry here cannot be told now: {why}."]


def test_a_look_that_fails_costs_nothing_but_the_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __init__(self, *_: object) -> None:
            raise MeasureError("no")

    monkeypatch.setattr(bench, "NullServer", Broken)
    assert foresee(Plan(), [stage_of(5_000)], Said()).workers(stage_of(5_000)) is None


def test_a_worker_that_dies_in_the_look_costs_nothing_but_the_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its account is gone, so that its answers seem to have cost nothing."""
    monkeypatch.setattr(foresight.Bench, "measure", lambda *_: make_step(20_000, cpu_share=0.0))
    assert foresee(Plan(), [stage_of(5_000)], Said()).workers(stage_of(5_000)) is None


def test_a_run_warns_of_a_heavy_plan_and_carries_it_out(tmp_path: Path) -> None:
    store.keep(make_calibration())
    with TruthServer(Schedule(ttft_ms=5, itl_ms=1, tokens=3)) as server:
        command = [sys.executable, "-m", "withstand", "run", "--base-url", server.base_url, "--output-dir", "r"]
        command += ["--request-rate", "1000", "--num-prompts", "20", "--output-len", "100", "--workers", "1"]
        command += ["--set", "workload.options.input_len=8"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "Stage rate-1000 asks for about 100,000 tokens/s" in done.stderr
    assert "Serving Benchmark Result" in done.stdout


@pytest.mark.skipif(not CORES, reason="this system does not tell how many cores are ours")
def test_without_workers_asked_for_a_run_takes_those_that_it_needs(tmp_path: Path) -> None:
    store.keep(make_calibration())
    plan = Plan(
        workload=Workload(tokenizer="estimate", options={"input_len": 8, "output_len": 100}),
        stages=(Stage(name="s", arrivals=Poisson(600), num_prompts=20),),
        output_dir=str(tmp_path / "r"),
    )
    with TruthServer(Schedule(ttft_ms=5, itl_ms=1, tokens=3)) as server:
        said = Said()
        run(msgspec.structs.replace(plan, target=Target(base_url=server.base_url)), argv=[], screen=said)
    (stage,) = [e for e in RunFolder.open(tmp_path / "r").manifest.stages if not e.stage.warmup]
    assert len(stage.health) == min(2, len(CORES))
    assert any("2 workers are enough" in m for m in said.messages) or len(CORES) == 1


# The whole.


def test_a_calibration_measures_both_kinds_of_load() -> None:
    heard: list[float] = []
    calibration = calibrate(seconds=1.0, listener=lambda _, share: heard.append(share))
    streamed = [s for s in calibration.steps if s.load.streamed]
    short = [s for s in calibration.steps if not s.load.streamed]
    assert streamed
    assert short
    assert len(heard) == len(calibration.steps)
    assert all(0 <= share <= 1 for share in heard)
    assert all(s.failed == 0 and s.cpu_share > 0 and s.server_share > 0 for s in calibration.steps)
    assert all(s.events == s.requests * s.load.tokens for s in calibration.steps)
    assert streamed[0].itl_error_p99_ns is not None
    assert streamed[0].ttft_error_p99_ns is not None
