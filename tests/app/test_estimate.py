"""How long a plan takes, as far as it tells."""

import pytest

from withstand.app.estimate import Estimate, estimated, in_words, lasting, search_in_words, seconds_of, to_come
from withstand.spec import Constant, LimitSearch, Plan, Poisson, Ramp, Rates, Stage, Step, StepPart, Trace, promise_of


@pytest.mark.parametrize(
    ("stage", "seconds"),
    [
        (Stage(duration_s=9, max_concurrency=1), 9),
        (Stage(num_prompts=9, max_concurrency=1), None),
        (Stage(num_prompts=90, arrivals=Poisson(3)), 30),
        (Stage(num_prompts=90, arrivals=Poisson(3), duration_s=20), 20),
        (Stage(num_prompts=90, arrivals=Constant(30), duration_s=20), 3),
        (Stage(num_prompts=9, arrivals=Trace()), None),
        (Stage(num_prompts=31, arrivals=Step((StepPart(10, 1), StepPart(0, 5), StepPart(10, 4)))), 8),
        (Stage(num_prompts=101, arrivals=Ramp(10, 10, 5)), 10),
    ],
)
def test_of_one_stage(stage: Stage, seconds: float | None) -> None:
    assert seconds_of(stage) == (None if seconds is None else pytest.approx(seconds, abs=0.11))


def test_rates_count_until_they_are_stages() -> None:
    plan = Plan(rates=(Rates(shares=(0.5, 1, 2), duration_s=10),))
    stage = Stage(name="a", duration_s=5, max_concurrency=1)
    assert estimated(plan, [stage]) == Estimate(stages=4, known_s=35)
    assert estimated(plan, [stage], [Stage(phase="sustained")]) == Estimate(stages=1, known_s=5)


def test_a_warm_up_is_no_stage() -> None:
    plan = Plan(rates=(Rates(shares=(0.5, 1), duration_s=10),))
    warm_up = Stage(name="w", num_prompts=3, max_concurrency=1, warmup=True)
    whole = estimated(plan, [warm_up, Stage(name="a", duration_s=5, max_concurrency=1)])
    assert whole == Estimate(stages=3, known_s=25, unknown=("w",), warmups=1)
    assert in_words(whole, None).startswith("3 stages and a warm-up, at least 25 s")
    assert in_words(whole.times(2), None).startswith("6 stages and 2 warm-ups, at least 50 s")
    assert to_come(plan, [warm_up]) == 2
    assert to_come(plan, [Stage(phase="sustained")]) == 0


def test_in_words() -> None:
    ends = "and what still runs at their ends"
    assert in_words(Estimate(stages=3, known_s=3600), 2.5) == f"3 stages, about 1 h 0 min {ends}; 2.5 at 2.5 an hour."
    assert in_words(Estimate(stages=2, known_s=90, unknown=("a",)), None) == (
        f"2 stages, at least 1 min 30 s {ends} (how long a takes is not known beforehand)."
    )
    assert "(how long 2 of them take is" in in_words(Estimate(stages=3, known_s=9, unknown=("a", "b")), None)
    assert in_words(Estimate(stages=1, known_s=0, unknown=("a",)), 2.5) == (
        "1 stage; how long that takes depends on how fast the server answers."
    )


def test_lasting() -> None:
    assert [lasting(s) for s in (0, 0.0118, 0.25, 0.9999, 59, 60, 3599.7, 5400)] == [
        "0 s",
        "11.8 ms",
        "250 ms",
        "1 s",
        "59 s",
        "1 min 0 s",
        "1 h 0 min",
        "1 h 30 min",
    ]


@pytest.mark.parametrize(("probe_s", "budget_s", "is_little"), [(None, 100, True), (5.0, 20, False), (5.0, 19, True)])
def test_a_budget_is_little_where_its_loads_do_not_fit_into_it(
    probe_s: float | None, budget_s: float, is_little: bool
) -> None:
    """One user and three loads, of 5 s each."""
    wanted = LimitSearch(promises=(promise_of("ttft:p95:500"),), start=4.0, probe_s=probe_s, budget_s=budget_s)
    assert ("That is little" in search_in_words(wanted, begins=True)) is is_little
