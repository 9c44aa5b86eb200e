"""Which of two stages loads a server more."""

from msgspec.structs import replace

from withstand.app.heavier import is_heavier
from withstand.spec import Gamma, Inf, Poisson, Ramp, Stage, Workload

SOME = Stage(name="a", arrivals=Poisson(8.0), max_concurrency=16, workload=Workload(), num_prompts=10)


def test_a_higher_rate_or_more_at_once_is_heavier_and_nothing_that_differs_otherwise() -> None:
    assert is_heavier(replace(SOME, arrivals=Poisson(9.0)), SOME)
    assert is_heavier(replace(SOME, max_concurrency=17, num_prompts=20, name="b"), SOME)
    assert is_heavier(replace(SOME, max_concurrency=None), SOME)
    assert not is_heavier(SOME, SOME)
    assert not is_heavier(replace(SOME, arrivals=Poisson(7.0)), SOME)
    assert not is_heavier(replace(SOME, arrivals=Poisson(9.0), max_concurrency=15), SOME)
    assert not is_heavier(replace(SOME, arrivals=Gamma(9.0, 0.5)), SOME)
    assert not is_heavier(replace(SOME, arrivals=Poisson(9.0), workload=Workload(dataset="sonnet")), SOME)


def test_closed_loops_are_told_apart_by_their_users_and_what_has_no_one_rate_by_nothing() -> None:
    closed = replace(SOME, arrivals=Inf())
    assert is_heavier(replace(closed, max_concurrency=32), closed)
    ramp = replace(SOME, arrivals=Ramp(1.0, 5.0, 10.0))
    assert not is_heavier(replace(ramp, arrivals=Ramp(1.0, 9.0, 10.0)), ramp)
