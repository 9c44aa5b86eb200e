"""Doubts that show along a series of runs, and those about limits that no report speaks of. Each case was real."""

from typing import Any

import pytest

from withstand.interop.checks import joint_doubts, run_doubts
from withstand.interop.read import read_text
from withstand.interop.shape import Conditions, ImportedRun, Source, Stats
from withstand.metrics.doubts import Doubt, DoubtKind


def run(numbers: dict[str, float] | None = None, stats: dict[str, Stats] | None = None, **asked: Any) -> ImportedRun:
    return ImportedRun(
        source=Source(file="f", format="load-test CSV", tool="t"),
        conditions=Conditions(**asked),
        numbers=numbers or {},
        stats=stats or {},
    )


def found(case: ImportedRun) -> dict[DoubtKind, Doubt]:
    return {doubt.kind: doubt for doubt in run_doubts(case)}


def together(*runs: ImportedRun) -> dict[DoubtKind, Doubt]:
    return {doubt.kind: doubt for doubt in joint_doubts(runs)}


def lost(completed: int, wanted: int, seconds: str) -> ImportedRun:
    numbers = {"attempted": float(wanted), "completed": float(completed)}
    return run(numbers, labels={"sent_for_s": seconds})


@pytest.mark.parametrize(
    ("completed", "wanted", "seconds", "limited"),
    [(100, 300, "30.0", True), (200, 900, "90", True), (117, 150, "30.0", False), (100, 105, "30", False)],
)
def test_exactly_a_round_number_a_minute_came_through(completed: int, wanted: int, seconds: str, limited: bool) -> None:
    doubt = found(lost(completed, wanted, seconds)).get(DoubtKind.LIKE_A_LIMITER)
    assert (doubt is not None) == limited
    assert doubt is None or "exactly 100 a minute" in doubt.sentence


REPORT = """\
  Testing 1.0 RPS for 30.0s...
    Sent: 30 | Actual RPS: 1.0 | Success: 30 | TTFT p90: 5648ms

  Testing 10.0 RPS for 30.0s...
    Sent: 300 | Actual RPS: 10.0 | Success: 100 | TTFT p90: 56056ms

│ Target RPS │ Actual RPS │ Success% │ TTFT p50 │ TTFT p90 │ TTFT p99 │ Total p90 │ Total p99 │
├────────────┼────────────┼──────────┼──────────┼──────────┼──────────┼───────────┼───────────┤
│    1.0     │    1.0     │   100%   │  5556ms  │  5648ms  │  5799ms  │   6210ms  │   6426ms  │
│    10.0    │    10.0    │   33%    │ 28815ms  │ 56056ms  │ 61271ms  │  56617ms  │  61828ms  │
"""


def test_the_counts_of_a_load_test_stand_above_its_table() -> None:
    slow, fast = read_text(REPORT, "report.md").runs
    assert (slow.numbers["completed"], slow.numbers["failed"]) == (30, 0)
    assert (fast.numbers["attempted"], fast.numbers["completed"]) == (300, 100)
    assert {DoubtKind.LIKE_A_LIMITER, DoubtKind.FEWER_THAN_ASKED} <= found(fast).keys()


def test_a_share_of_success_without_a_count() -> None:
    told = found(run(labels={"success_percent": "33%"}))[DoubtKind.REQUESTS_FAILED]
    assert told.blocking
    assert "67 % failed" in told.sentence
    assert not found(run(labels={"success_percent": "100%"}))


def test_more_places_than_requests() -> None:
    doubt = found(run({"completed": 20.0}, max_concurrency=64, num_prompts=20))[DoubtKind.CONCURRENCY_NOT_REACHED]
    assert "64 at once" in doubt.sentence
    assert "20 requests were sent" in doubt.sentence
    assert DoubtKind.CONCURRENCY_NOT_REACHED not in found(run(max_concurrency=8, num_prompts=20))


@pytest.mark.parametrize(("e2el", "wrong"), [(17_609.0, True), (42_000.0, False)])
def test_ttft_and_tpot_make_up_the_whole(e2el: float, wrong: bool) -> None:
    stats = {"ttft": Stats(mean=190.7), "tpot": Stats(mean=162.55), "e2el": Stats(mean=e2el)}
    doubts = found(run({"completed": 100.0, "total_output_tokens": 25_883.0}, stats))
    assert (DoubtKind.PARTS_AGAINST_WHOLE in doubts) == wrong
    assert not wrong or "190.7 + 162.6 x (258.8 - 1) ms = 42.10 s" in doubts[DoubtKind.PARTS_AGAINST_WHOLE].sentence


@pytest.mark.parametrize(
    ("ttft", "rate", "burst"), [(129_064.0, None, True), (500.0, None, False), (129_064.0, 10.0, False)]
)
def test_who_waits_half_the_run_stands_in_a_queue(ttft: float, rate: float | None, burst: bool) -> None:
    stats = {"ttft": Stats(percentiles={"p50": ttft})}
    doubts = found(run({"completed": 2048.0, "duration_s": 272.9}, stats, request_rate=rate))
    assert (DoubtKind.QUEUE_OF_A_BURST in doubts) == burst


def level(cap: int, throughput: float, ttft: float) -> ImportedRun:
    numbers = {"attempted": 20.0, "completed": 20.0, "output_throughput": throughput}
    return run(numbers, {"ttft": Stats(percentiles={"p50": ttft})}, max_concurrency=cap, arrivals="inf")


def test_a_server_that_is_full_with_one_request() -> None:
    full = together(level(1, 25.79, 1048.0), level(2, 25.98, 9072.0), level(4, 26.17, 36_295.0))
    assert "From 1 to 4 at once the output stays 25.79 to 26.17" in full[DoubtKind.FLAT_THROUGHPUT].sentence
    scaling = together(level(1, 28.0, 700.0), level(2, 50.7, 832.0), level(4, 83.0, 1500.0))
    assert DoubtKind.FLAT_THROUGHPUT not in scaling


def row(ttft: float, tail: float) -> ImportedRun:
    return run(stats={"ttft": Stats(percentiles={"p90": ttft}), "e2el": Stats(percentiles={"p90": ttft + tail})})


def test_the_same_time_after_the_first_token_under_every_load() -> None:
    played = together(row(4970, 559), row(5208, 547), row(11_422, 582), row(56_056, 561))
    assert "547 to 582 ms in all 4 runs" in played[DoubtKind.NOT_STREAMED].sentence
    assert played[DoubtKind.NOT_STREAMED].blocking
    assert not together(row(408, 4300), row(470, 4400), row(564, 4600), row(3015, 4700))


def test_the_engine_is_the_author_s_label() -> None:
    two = together(run(engine="vllm", backend="vllm"), run(engine="sgl", backend="vllm"))
    assert "names how the client spoke" in two[DoubtKind.BACKEND_NO_ENGINE].sentence
    assert not together(run(engine="vllm", backend="vllm"), run(engine="sgl", backend="sglang"))
