"""Each doubt about a stranger's numbers: raised by the case it is made for, silent beside it."""

from typing import Any

import pytest

from foreign import VLLM_JSON, several
from withstand.interop.checks import joint_doubts, run_doubts
from withstand.interop.shape import Conditions, ImportedRun, Source, Stats
from withstand.interop.summary import summary_of
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.report.columns import rate_asked
from withstand.report.numbers import UNKNOWN

SOUND: dict[str, float] = {
    "completed": 1000, "duration_s": 100.0, "request_throughput": 10.0, "output_throughput": 1000.0,
    "total_output_tokens": 100_000, "total_input_tokens": 50_000,
}  # fmt: skip
TIMES = {
    "ttft": Stats(mean=50, percentiles={"p50": 48, "p90": 60, "p99": 80}),
    "tpot": Stats(mean=10, percentiles={"p50": 10, "p90": 11, "p99": 12}),
    "itl": Stats(mean=10, percentiles={"p50": 10, "p90": 11, "p99": 12}),
    "e2el": Stats(mean=1040, percentiles={"p50": 1038, "p90": 1200, "p99": 1300}),
}


def run(numbers: dict[str, float] | None = None, stats: dict[str, Stats] | None = None, **asked: Any) -> ImportedRun:
    return ImportedRun(
        source=Source(file="f", format="printed block", tool="t"),
        conditions=Conditions(**asked),
        numbers=SOUND | (numbers or {}),
        stats=TIMES | (stats or {}),
    )


def found(case: ImportedRun) -> dict[DoubtKind, Doubt]:
    return {doubt.kind: doubt for doubt in run_doubts(case)}


def test_sound_numbers_raise_nothing() -> None:
    assert not found(run(request_rate=10.0, num_prompts=1000, max_concurrency=16))


def test_asked_minus_completed_are_missing_and_too_many_block() -> None:
    few, many = found(run(num_prompts=1010)), found(run(num_prompts=2000))
    assert "1,010 - 1,000 = 10" in few[DoubtKind.FEWER_THAN_ASKED].sentence
    assert not few[DoubtKind.FEWER_THAN_ASKED].blocking
    assert many[DoubtKind.FEWER_THAN_ASKED].blocking


def test_who_was_cut_by_the_end_of_the_run_has_not_failed() -> None:
    cut = found(run({"completed": 977, "incomplete": 23}, num_prompts=1000))[DoubtKind.FEWER_THAN_ASKED]
    assert "cut 23 of them" in cut.sentence
    assert "failed" not in cut.remedy
    more = found(run({"completed": 900, "incomplete": 23}, num_prompts=1000))[DoubtKind.FEWER_THAN_ASKED]
    assert "why they failed" in more.remedy


def test_nearly_all_is_not_all_and_hardly_any_is_not_nothing() -> None:
    lost = found(run({"completed": 3}, num_prompts=10_000))
    assert "(over 99.9 %)" in lost[DoubtKind.FEWER_THAN_ASKED].sentence
    one = found(run({"completed": 9999}, num_prompts=10_000))
    assert "(under 0.1 %)" in one[DoubtKind.FEWER_THAN_ASKED].sentence


@pytest.mark.parametrize(("rate", "kind"), [(10.0, None), (10.4, None), (20.0, DoubtKind.RATE_NOT_ACHIEVED)])
def test_a_rate_is_missed_by_more_than_chance(rate: float, kind: DoubtKind | None) -> None:
    raised = found(run(request_rate=rate))
    assert kind is None or kind in raised
    assert (DoubtKind.RATE_NOT_ACHIEVED in raised) == (kind is not None)


def test_a_run_as_short_as_an_answer_says_nothing_of_the_rate() -> None:
    numbers = {"completed": 36, "duration_s": 5.8, "request_throughput": 6.207, "total_output_tokens": 3600}
    short = run(numbers | {"output_throughput": 620.7, "total_input_tokens": 1800}, request_rate=10.0)
    assert DoubtKind.TOO_SHORT_TO_TELL in found(short)


def test_throughput_times_duration_is_the_count() -> None:
    doubt = found(run({"output_throughput": 1200.0}))[DoubtKind.SUMS_DISAGREE]
    assert "120,000 output tokens, but 100,000" in doubt.sentence


def test_latencies_over_time_are_the_concurrency() -> None:
    assert DoubtKind.CONCURRENCY_DISAGREES in found(run(max_concurrency=8))
    assert DoubtKind.CONCURRENCY_DISAGREES in found(run({"concurrency_mean": 5.0}))
    assert DoubtKind.CONCURRENCY_DISAGREES not in found(run({"concurrency_mean": 10.4}, max_concurrency=16))


def test_a_peak_below_its_mean() -> None:
    assert DoubtKind.PEAK_BELOW_MEAN in found(run({"output_events_peak": 500.0}))
    assert DoubtKind.PEAK_BELOW_MEAN not in found(run({"output_events_peak": 1500.0}))


@pytest.mark.parametrize(
    "stats",
    [
        {"e2el": Stats(mean=40)},
        {"ttft": Stats(percentiles={"p50": 100, "p99": 90})},
        {"ttft": Stats(percentiles={"p99": 100}, max=90)},
    ],
)
def test_an_order_that_cannot_be_blocks(stats: dict[str, Stats]) -> None:
    assert found(run(stats=stats))[DoubtKind.IMPOSSIBLE].blocking


def test_tpot_far_from_itl_in_either_direction() -> None:
    assert "several tokens" in found(run(stats={"itl": Stats(mean=40)}))[DoubtKind.TPOT_AGAINST_ITL].sentence
    assert "miscounted" in found(run(stats={"tpot": Stats(mean=60)}))[DoubtKind.TPOT_AGAINST_ITL].sentence


def test_events_against_tokens() -> None:
    assert DoubtKind.EVENTS_AGAINST_TOKENS in found(run({"total_output_tokens": 20_000, "output_throughput": 200.0}))


def test_claimed_against_counted_tokens() -> None:
    doubt = found(run({"retokenized_output_tokens": 501_000}, labels={"requested_output_tokens": "100000"}))
    assert "5.01x" in doubt[DoubtKind.CLAIMED_NOT_COUNTED].sentence
    assert "no count at all" in doubt[DoubtKind.CLAIMED_NOT_COUNTED].sentence
    assert not found(run({"retokenized_output_tokens": 99_000}))


def test_asked_against_returned_length_where_it_was_prescribed() -> None:
    assert DoubtKind.LENGTHS_DIFFER in found(run(output_tokens=200.0, dataset="random"))
    assert not found(run(output_tokens=200.0, dataset="sharegpt"))
    assert not found(run(output_tokens=200.0, dataset="random", labels={"random_range_ratio": "0.0"}))


def test_a_mean_far_above_its_median() -> None:
    assert DoubtKind.MEAN_FAR_FROM_MEDIAN in found(run(stats={"ttft": Stats(mean=200, percentiles={"p50": 50})}))


def test_bursts_and_answers_in_one_piece() -> None:
    assert DoubtKind.HOP_BUFFERS in found(run(stats={"itl": Stats(mean=10, percentiles={"p50": 0.02})}))
    tails = {
        "ttft": Stats(percentiles={"p50": 5000, "p90": 9000}), "e2el": Stats(percentiles={"p50": 5566, "p90": 9567}),
    }  # fmt: skip
    assert DoubtKind.NOT_STREAMED in found(run(stats=tails))


def test_the_speed_of_single_requests_in_place_of_a_throughput() -> None:
    case = run(stats={"speed_per_request": Stats(mean=36.5)}, max_concurrency=16)
    numbers = {name: value for name, value in SOUND.items() if name != "output_throughput"}
    alone = ImportedRun(source=case.source, conditions=case.conditions, numbers=numbers, stats=case.stats)
    assert DoubtKind.SPEED_NO_THROUGHPUT in found(alone)
    assert DoubtKind.SPEED_NO_THROUGHPUT not in found(case)


def test_a_p99_of_few() -> None:
    assert DoubtKind.TOO_FEW_SAMPLES in found(run({"completed": 367, "request_throughput": 3.67}))


def test_the_same_number_lost_by_two_engines_is_the_client_s() -> None:
    lost = VLLM_JSON | {"num_prompts": 2000, "completed": 1015}
    both = several([lost | {"framework": "a"}, lost | {"framework": "b"}])
    assert DoubtKind.CLIENT_LIMIT in {doubt.kind for doubt in joint_doubts(both)}
    assert not joint_doubts(several([lost | {"framework": "a"}, lost | {"framework": "a"}]))


def test_runs_that_wrote_different_amounts_did_not_do_the_same_work() -> None:
    texts = [run({"retokenized_output_tokens": n}) for n in (129_591, 25_599, 31_740)]
    assert "129,591, 25,599, 31,740" in joint_doubts(texts)[0].sentence


def test_a_summary_has_the_stage_s_doubts_and_the_run_s() -> None:
    lost = VLLM_JSON | {"num_prompts": 2000, "completed": 1015}
    summary = summary_of(several([lost | {"framework": "a"}, lost | {"framework": "b"}]))
    assert [stage.name for stage in summary.stages] == ["a rate-5 conc-8", "b rate-5 conc-8"]
    assert all(stage.failed == 985 and not stage.facts for stage in summary.stages)
    assert DoubtKind.CLIENT_LIMIT in {doubt.kind for doubt in summary.doubts}


def test_a_rate_that_the_file_does_not_tell_is_shown_as_unknown() -> None:
    (stage,) = summary_of([run()]).stages
    assert rate_asked(stage) == UNKNOWN
