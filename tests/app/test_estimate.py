"""How long a plan takes, as far as it tells."""

import pytest

from withstand.app.estimate import Estimate, estimated, in_words, lasting, seconds_of
from withstand.spec import Constant, Plan, Poisson, Ramp, Rates, Stage, Step, StepPart, Trace


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
    assert [lasting(s) for s in (0.25, 59, 60, 3599.7, 5400)] == [
        "0.25 s",
        "59 s",
        "1 min 0 s",
        "1 h 0 min",
        "1 h 30 min",
    ]
