"""A stage ends when its number is known as exactly as was asked, and the number is then right."""

import math
from itertools import islice

import pytest

from withstand.control.exactness import Exactness
from withstand.control.order import InOrder
from withstand.errors import UsageError
from withstand.record import Record
from withstand.spec import Precision, precision_of
from withstand.testing.queues import Queue, exponential, fixed

ENDLESS = Queue(60, exponential(0.02, 0.1))
"""Nobody waits: times are independent, the mean of an answer is 120 ms."""


def ended_after(wanted: Precision, queue: Queue, rate_rps: float, seed: int, most: int = 20_000) -> list[Record] | None:
    """The records by which it ended; None = it did not."""
    exactness = Exactness((wanted,))
    seen: list[Record] = []
    for record in islice(queue.records(rate_rps, seed), most):
        exactness.feed([record])
        seen.append(record)
        if exactness.reached():
            return seen
    return None


def mean_ms(records: list[Record]) -> float:
    return sum((r.end_ns or 0) - (r.sent_ns or 0) for r in records) / len(records) / 1e6


def test_the_mean_is_as_exact_as_asked_in_nineteen_cases_of_twenty() -> None:
    wanted = precision_of("e2el:mean:12%")
    runs = [ended_after(wanted, ENDLESS, 100.0, seed) for seed in range(60)]
    assert all(runs)
    right = sum(abs(math.log(mean_ms(run) / 120)) <= 0.13 for run in runs if run)
    assert right >= 53
    # Of 100 / 120 as coefficient of variation, 1.96 x 0.83 / sqrt(n) = 12 % at n = 185.
    assert 90 < sorted(len(run) for run in runs if run)[30] < 450


def test_half_the_width_takes_about_four_times_as_long() -> None:
    lengths = []
    for text in ("e2el:mean:16%", "e2el:mean:8%"):
        runs = [ended_after(precision_of(text), ENDLESS, 100.0, seed) for seed in range(20)]
        lengths.append(sorted(len(run) for run in runs if run)[10])
    assert 2.0 < lengths[1] / lengths[0] < 8.0


def test_a_queue_that_only_grows_is_never_known_exactly() -> None:
    assert ended_after(precision_of("ttft:p95:10%"), Queue(1, fixed(0.1, 0.001)), 15.0, 1, 5_000) is None


def test_times_that_are_all_alike_are_known_at_once() -> None:
    run = ended_after(precision_of("e2el:p95:1%"), Queue(60, fixed(0.02, 0.1)), 100.0, 1, 1_000)
    assert run is not None
    assert len(run) == 50


def test_what_comes_behind_a_missing_one_waits() -> None:
    records = ENDLESS.answers(10.0, 0, 4)
    order = InOrder()
    assert list(order.take(records[1:3])) == []
    assert list(order.take(records[:1])) == records[:3]
    assert list(order.take([])) == []
    order = InOrder()
    list(order.take(records[2:]))
    assert order.rest() == records[2:]


@pytest.mark.parametrize("text", ["ttft", "ttft:95:5%", "ttft:p95:0%", "ttft:p100:5%", "itl:p95:5%", "ttft:mean:x"])
def test_what_is_no_precision_is_one_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="is no precision; write ttft:p95:5%"):
        precision_of(text)


def test_it_is_said_as_people_say_it() -> None:
    assert str(precision_of("ttft:p95:5%")) == "p95 TTFT within 5 %"
    assert str(precision_of("response:mean:2.5")) == "mean response time within 2.5 %"
