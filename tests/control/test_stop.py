"""Rules that end a stage: each by what it is for, and several together."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from withstand.control.growing import Growing
from withstand.control.stop import FirstOf, Noticing, StopRule, UntilFailing, UntilGrowing, rules_of
from withstand.metrics.trend import Growth
from withstand.record import Record, Status
from withstand.spec import Until, parse_plan, precision_of, promise_of
from withstand.testing.queues import NS, Queue, Times, batched, exponential, fixed, in_order_of_ends

GOOD = Queue(1, fixed(0.1, 0.001)).answers(1.0, 0, 1)[0]
SLOTS = Queue(8, exponential(0.1, 0.9))
"""Eight answers a second."""


def grown(queue: Queue, rate_rps: float, seed: int, until_s: float) -> tuple[Growth | None, float]:
    """What is seen, and when."""
    growing = Growing()
    for ended, count in in_order_of_ends(queue.records(rate_rps, seed), until_s):
        growing.feed(ended)
        growing.in_flight(*count)
        if growth := growing.growth():
            return growth, count[0] / NS
    return None, until_s


@pytest.mark.parametrize("seed", range(5))
def test_a_queue_without_end_is_seen_long_before_the_stage_is_over(seed: int) -> None:
    growth, after_s = grown(SLOTS, 12.0, seed, until_s=600)
    assert growth is not None
    assert after_s < 150


def test_a_server_that_keeps_up_is_hardly_ever_said_to_queue() -> None:
    """At 60, 80 and 90 % of what it can do, ten minutes each."""
    seen = [(rate, seed) for rate in (4.8, 6.4, 7.2) for seed in range(12) if grown(SLOTS, rate, seed, 600)[0]]
    assert len(seen) <= 1


def test_once_the_server_has_long_been_full_no_further_answer_is_read() -> None:
    """To decode them takes time from those that send."""
    growing = Growing()
    for ended, count in in_order_of_ends(SLOTS.records(4.0, 1), 120):
        growing.feed(ended)
        growing.in_flight(*count)
        assert growing.growth() is None
    unread = iter([GOOD])
    growing.feed(unread)
    assert next(unread) is GOOD


@pytest.mark.parametrize("times", [fixed(1, 29), exponential(1, 29), batched(1, 5, 0.05)])
def test_long_answers_that_fill_an_empty_server_are_no_queue(times: Times) -> None:
    assert [grown(Queue(1_000, times), 10.0, seed, 300)[0] for seed in range(3)] == [None] * 3


def failing(count: int) -> list[Record]:
    return [replace(GOOD, id=number, status=Status.REFUSED) for number in range(count)]


def test_errors_end_a_stage_that_waits_for_what_runs_and_say_how_many() -> None:
    rule = UntilFailing(0.2)
    rule.feed(failing(3))
    assert rule.ending() is None
    rule.feed(failing(12)[3:])
    ending = rule.ending()
    assert ending is not None
    assert ending.because == "more than 20 % of the requests fail (12 of the first 12 did)"
    assert (ending.at_once, ending.too_much) == (False, True)


def of(**until: object) -> Sequence[StopRule]:
    return list(rules_of(parse_plan({"stages": [{"until": until}]}).stages[0].until))


def test_several_rules_stand_side_by_side_and_the_first_that_knows_ends_the_stage() -> None:
    rule = FirstOf(of(errors=0.5, queue="grows"))
    rule.in_flight(0, 1, 1)
    assert rule.ending() is None
    rule.feed(iter(failing(30)))
    ending = rule.ending()
    assert ending is not None
    assert "fail" in ending.because
    assert rule.found() is None


def test_of_several_rules_the_one_that_was_asked_tells_what_was_found() -> None:
    until = Until(known=(promise_of("success:99%"),), precise=(precision_of("ttft:p95:5%"),), errors=0.2)
    rule = FirstOf(list(rules_of(until)))
    rule.feed(failing(40))
    found = rule.found()
    assert found is not None
    assert found.requests == 40


def test_what_is_only_to_be_noticed_is_told_once_and_ends_nothing() -> None:
    told: list[str] = []
    rule = Noticing(UntilFailing(0.2), told.append)
    for _ in range(2):
        rule.feed(failing(12))
        assert rule.ending() is None
    assert len(told) == 1


def test_a_growing_queue_ends_a_stage_at_once() -> None:
    rule = UntilGrowing()
    ending = None
    for ended, count in in_order_of_ends(SLOTS.records(16.0, 1), 300):
        rule.feed(ended)
        rule.in_flight(*count)
        ending = ending or rule.ending()
    assert ending is not None
    assert ending.at_once
    assert ending.because.startswith("the queue grows (from ")


def test_without_a_rule_there_is_none() -> None:
    assert of() == []
