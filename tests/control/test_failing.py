"""Whether more than a share of the requests fail: exact, and as often as one looks."""

import math
from itertools import accumulate
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from withstand.control.failing import CHANCE, Failing, ratio
from withstand.record import Record, Status
from withstand.testing.queues import Queue, fixed

GOOD = Queue(1, fixed(0.1, 0.001)).answers(1.0, 0, 1)[0]


def answer(number: int, status: Status = Status.OK) -> Record:
    return replace(GOOD, id=number, status=status)


@given(st.integers(1, 60), st.floats(0.05, 0.9))
def test_it_is_fair_where_just_the_share_fails(asked: int, share: float) -> None:
    """The mean of the ratio over all that may come, each as likely as it is, is 1."""
    chances = [math.comb(asked, k) * share**k * (1 - share) ** (asked - k) for k in range(asked + 1)]
    mean = math.fsum(p * math.exp(ratio(k, asked, share)) for k, p in enumerate(chances))
    assert mean == pytest.approx(1, rel=1e-6)


def test_a_share_that_is_just_allowed_hardly_ever_ends_a_stage_however_long_it_is() -> None:
    wrong = 0
    for seed in range(2_000):
        random = Random(seed)
        failed = accumulate(random.random() < 0.2 for _ in range(400))
        wrong += any(ratio(k, n, 0.2) >= -math.log(CHANCE) for n, k in enumerate(failed, start=1) if k > 0.2 * n)
    assert wrong <= 8  # 2 are expected at most; more than 8 come in 1 of 4,000 cases


def test_a_dead_server_is_known_after_a_handful() -> None:
    failing = Failing(0.2)
    for number in range(20):
        failing.feed([answer(number, Status.REFUSED)])
        if failing.is_sure():
            break
    assert failing.failed == failing.asked == number + 1
    assert 4 <= number <= 8


def test_failures_that_are_quicker_than_answers_prove_nothing() -> None:
    """Of 64 that run, six have failed at once: that is a tenth, and the others may be good."""
    failing = Failing(0.2)
    failing.feed([answer(number, Status.HTTP_ERROR) for number in range(0, 60, 10)])
    assert (failing.failed, failing.asked) == (6, 51)
    assert not failing.is_sure()


def test_what_we_ourselves_have_not_sent_or_cut_says_nothing() -> None:
    failing = Failing(0.2)
    failing.feed([answer(n, s) for n, s in enumerate([Status.NOT_SENT, Status.LOST, Status.CANCELLED] * 20)])
    assert (failing.failed, failing.asked) == (0, 0)
    assert not failing.is_sure()


def test_all_may_fail_where_that_is_what_is_allowed() -> None:
    failing = Failing(1.0)
    failing.feed([answer(number, Status.TIMEOUT) for number in range(1_000)])
    assert not failing.is_sure()
