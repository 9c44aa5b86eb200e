"""How long a step will take, by what was heard before."""

import pytest

from withstand.doctor.heard import Heard
from withstand.doctor.pace import Load, Pace, foretold, pace_of
from withstand.record import Status


def answer(tokens: int, ms: float) -> Heard:
    return Heard(status=Status.OK, sent_ns=0, end_ns=int(ms * 1e6), usage_tokens=tokens)


def test_a_line_through_short_and_long_answers() -> None:
    pace = pace_of([answer(4, 140)] * 3, [answer(96, 1060), answer(96, 1060), answer(96, 9000)])
    assert pace is not None
    assert (pace.first_ms, pace.token_ms) == pytest.approx((100, 10))
    assert pace.seconds(Load(82, 16)) == pytest.approx(82 * 0.26)


def test_answers_that_say_nothing_of_tokens() -> None:
    assert pace_of([], [answer(96, 1)]) is None
    assert pace_of([answer(4, 50)], [answer(4, 90)]) == Pace(50, 0)
    assert pace_of([answer(4, 90)], [answer(96, 50)]) == Pace(90, 0)


@pytest.mark.parametrize(
    ("pace", "said"),
    [
        (None, "X: 10 requests …"),
        (Pace(10, 1), "X: 10 requests …"),
        (Pace(1000, 100), "X: 10 requests, about 12 s …"),
        (Pace(10_000, 100), "X: 10 requests, about 102 s …"),
        (Pace(60_000, 0), "X: 10 requests, about 10 min …"),
    ],
)
def test_what_is_said(pace: Pace | None, said: str) -> None:
    assert foretold("X", Load(10, 2), pace) == said
