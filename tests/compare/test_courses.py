from random import Random

import pytest

from compared import courses_of, queue, records_of, stage
from withstand.compare.courses import estimates_of, schedule_of
from withstand.compare.estimate import TOO_FEW
from withstand.record import Record, Status
from withstand.testing.records import make_failure


@pytest.fixture
def records() -> list[Record]:
    return records_of([20 * value for value in queue(400, 0.5, "courses")])


def test_every_value_is_that_of_the_summary(records: list[Record]) -> None:
    summary = stage(records)
    found = estimates_of(courses_of(records), summary)
    assert found["ttft.mean"].value == summary.ttft.mean
    assert found["ttft.p90"].value == summary.ttft.percentiles["p90"]
    assert found["itl.mean"].value == summary.itl.mean
    assert found["request_throughput"].value == summary.request_throughput
    assert found["success_rate"].value == 1.0


@pytest.mark.parametrize(("answers", "known"), [(5, False), (6, True)])
def test_a_handful_of_answers_has_no_rate_however_long_it_took(answers: int, known: bool) -> None:
    """The audit's own limit."""
    records = [record for i in range(answers) for record in _paced(4 * i, 10.0, 40)]
    found = estimates_of(courses_of(records), stage(records))
    for key in ("request_throughput", "output_throughput"):
        assert found[key].value
        assert (found[key].lack != TOO_FEW) == known, key


def test_the_order_of_the_file_does_not_matter(records: list[Record]) -> None:
    summary = stage(records)
    shuffled = Random(1).sample(records, len(records))
    assert estimates_of(courses_of(shuffled), summary) == estimates_of(courses_of(records), summary)


def test_intervals_hold_their_value(records: list[Record]) -> None:
    for key, estimate in estimates_of(courses_of(records), stage(records)).items():
        if (interval := estimate.interval) is not None:
            assert interval.low is not None
            assert interval.high is not None
            assert interval.low <= estimate.value <= interval.high, key


def test_gaps_of_one_answer_are_one_draw() -> None:
    """Each answer has its own pace: a thousand gaps of ten answers are ten values, not a thousand."""
    paces = [Random(i).uniform(5, 15) for i in range(60)]
    few, many = ([r for i, pace in enumerate(paces) for r in _paced(i, pace, tokens)] for tokens in (4, 40))
    sure = [estimates_of(courses_of(records), stage(records))["itl.mean"].error for records in (few, many)]
    assert sure[0] is not None
    assert sure[1] is not None
    assert sure[1] == pytest.approx(sure[0], rel=0.2)


def _paced(number: int, pace_ms: float, tokens: int) -> list[Record]:
    (record,) = records_of([20.0], tokens=tokens)
    chunk_ns = [record.chunk_ns[0] + round(i * pace_ms * 1e6) for i in range(tokens)]
    shift = number * 200_000_000
    return [
        Record(
            id=number,
            stage=0,
            status=Status.OK,
            sent_ns=shift,
            chunk_ns=[at + shift for at in chunk_ns],
            end_ns=chunk_ns[-1] + shift,
            output_tokens=tokens,
        )
    ]


def test_failures_count_in_the_success_rate_and_nowhere_else(records: list[Record]) -> None:
    failures = [make_failure(1000 + i, sent_ms=i * 1000.0) for i in range(40)]
    summary = stage([*records, *failures])
    found = estimates_of(courses_of([*records, *failures]), summary)
    assert found["success_rate"].value == pytest.approx(400 / 440)
    assert found["ttft.mean"].n == 400


def test_rates_and_gaps_that_are_not_known_are_not_made_up(records: list[Record]) -> None:
    found = estimates_of(courses_of(records), stage(records), rates=False, gaps=False)
    assert not {key for key in found if key.startswith("itl") or key.endswith("throughput")}


def test_a_schedule_is_recognised_by_its_sends(records: list[Record]) -> None:
    schedule = schedule_of(courses_of(records), stage(records))
    assert schedule is not None
    assert schedule.requests == 400
    assert schedule.offsets_ns[0] == 0
