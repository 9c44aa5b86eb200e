"""A plan is made to fit into a time, and kept within it. Pure: the clock is a number."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.app.budget import FILLED, SHORTEST_S, WARMUP, Budget, Lasted, fitted, likely_drain_s, likely_s, of_length
from withstand.app.estimate import estimated
from withstand.app.stages import filled
from withstand.errors import UsageError
from withstand.spec import Constant, Plan, Ramp, Rates, Stage, Step, StepPart

lengths = st.lists(st.floats(2, 1000), min_size=1, max_size=6)


def plan(*durations_s: float, **more: object) -> Plan:
    stages = tuple(Stage(name=f"s{i}", max_concurrency=1, duration_s=s) for i, s in enumerate(durations_s))
    return Plan(stages=stages, **more)


def known_s(asked: Plan) -> float:
    return estimated(asked, filled(asked, asked.stages)).known_s


@given(lengths, st.floats(1, 10_000))
def test_a_plan_that_fits_fills_at_most_its_share_and_keeps_the_proportions(
    durations_s: list[float], budget_s: float
) -> None:
    asked = plan(*durations_s, budget_s=budget_s)
    if min(durations_s) * min(1, budget_s * FILLED / sum(durations_s)) < SHORTEST_S * (1 - 1e-6):
        with pytest.raises(UsageError, match="--budget"):
            fitted(asked)
        return
    made = fitted(asked)
    factor = (made.stages[0].duration_s or 0) / durations_s[0]
    assert factor <= 1
    assert known_s(made) <= max(budget_s * FILLED, 0) * (1 + 1e-9)
    assert [s.duration_s for s in made.stages] == pytest.approx([s * factor for s in durations_s])


@given(lengths)
def test_the_budget_that_a_refusal_names_is_enough(durations_s: list[float]) -> None:
    try:
        fitted(plan(*durations_s, budget_s=1))
    except UsageError as e:
        told = str(e).partition("; give ")[2].partition(",")[0]
        units = {"s": 1, "min": 60, "h": 3600}
        words = told.split()
        needed_s = sum(float(n) * units[u] for n, u in zip(words[::2], words[1::2], strict=True))
        rounding_s = 60 if "h" in words else 0
        fitted(plan(*durations_s, budget_s=needed_s + rounding_s))


def test_a_plan_that_fits_stays_as_it_is_and_one_without_a_budget_too() -> None:
    assert fitted(plan(10, 20, budget_s=60)) == plan(10, 20, budget_s=60)
    assert fitted(plan(10, 20)) == plan(10, 20)


def test_stages_that_a_rate_ends_are_not_scaled_but_counted() -> None:
    by_count = Stage(name="n", arrivals=Constant(2), num_prompts=40)
    asked = Plan(stages=(by_count, Stage(name="t", max_concurrency=1, duration_s=100)), budget_s=50)
    made = fitted(asked)
    assert made.stages[0] == by_count
    assert made.stages[1].duration_s == pytest.approx(50 * FILLED - 20)


def test_arrivals_with_a_course_run_through_it_faster() -> None:
    steps = Stage(name="s", arrivals=Step((StepPart(1, 30), StepPart(5, 10))), duration_s=40)
    ramp = Stage(name="r", arrivals=Ramp(1, 5, 60), duration_s=60)
    made = fitted(Plan(stages=(steps, ramp), budget_s=50 / FILLED))
    assert made.stages[0].arrivals == Step((StepPart(1, 15), StepPart(5, 5)))
    assert made.stages[1].arrivals == Ramp(1, 5, 30)
    assert [s.duration_s for s in made.stages] == [20, 30]


def test_steps_that_nobody_gave_an_end_are_scaled_with_their_parts() -> None:
    steps = Plan(stages=(Stage(name="s", arrivals=Step((StepPart(1, 100),))),), budget_s=50 / FILLED)
    assert known_s(fitted(steps)) == pytest.approx(50)


def test_rates_that_are_still_to_be_decided_have_their_part() -> None:
    asked = plan(60, rates=(Rates(shares=(0.5, 1), duration_s=30),), budget_s=60 / FILLED)
    made = fitted(asked)
    assert (made.stages[0].duration_s, made.rates[0].duration_s) == (30, 15)
    assert known_s(made) == pytest.approx(60)


@given(lengths, st.floats(1, 10_000))
def test_a_plan_of_a_length_fills_it(durations_s: list[float], budget_s: float) -> None:
    made = of_length(plan(*durations_s), budget_s)
    assert known_s(made) == pytest.approx(budget_s * FILLED)
    assert made.budget_s == budget_s
    assert known_s(fitted(made)) == pytest.approx(budget_s * FILLED)


# While it runs.

TIMED = Stage(name="t", max_concurrency=1, duration_s=10)
COUNTED = Stage(name="c", max_concurrency=1, num_prompts=10)


def after(spent_s: float, limit_s: float | None = 60) -> Budget:
    return Budget(limit_s, lambda: int(spent_s * 1e9))


def test_a_stage_begins_only_if_it_can_end_its_last_answers_included() -> None:
    assert after(50).why_not(TIMED, 0) is None
    assert after(45).why_not(TIMED, 5) is None
    assert after(46).why_not(TIMED, 5) == "it needs 15 s, and 14 s of the budget is left"
    assert after(10**6, None).why_not(TIMED, 5) is None


def test_a_stage_without_an_end_by_time_begins_while_time_is_left_and_ends_with_it() -> None:
    assert after(59).why_not(COUNTED, 0) is None
    assert "0 s of the budget is left" in (after(61).why_not(COUNTED, 0) or "")
    assert after(40).bounded(COUNTED, 5).duration_s == 15
    assert after(40).bounded(TIMED, 5) is TIMED
    assert after(40, None).bounded(COUNTED, 5) is COUNTED


WARM = Stage(name="w", max_concurrency=1, num_prompts=15, warmup=True)


def test_a_warm_up_leaves_the_stages_their_time() -> None:
    """It took all of the budget, and nothing was measured."""
    budget = after(20)
    bounded = budget.bounded(WARM, 0)
    assert bounded.duration_s is not None
    took_s = bounded.duration_s + budget.drain_ns(bounded, 100) / 1e9
    assert took_s == pytest.approx(40 * WARMUP)
    assert after(0, None).bounded(WARM, 0) is WARM


def test_a_stage_of_a_later_cycle_is_foretold_by_the_same_one_before() -> None:
    cold, warm = (Stage(name=f"{n}-1", max_concurrency=1, num_prompts=k) for n, k in (("cold", 1), ("warm", 4)))
    done = [Lasted(cold, 3.0), Lasted(warm, 8.0), Lasted(msgspec.structs.replace(warm, name="warm-2"), 9.0)]
    again = msgspec.structs.replace(warm, name="warm-3")
    assert likely_s(again, done) == 9.0
    assert likely_s(TIMED, done) == likely_s(COUNTED, done) == 0
    assert after(52).why_not(again, 9.0) == "it needs 9 s, and 8 s of the budget is left"


@given(st.floats(0, 59), st.floats(0, 100), st.sampled_from([TIMED, COUNTED, WARM]))
def test_what_may_begin_ends_within_the_budget(spent_s: float, drain_s: float, stage: Stage) -> None:
    budget = after(spent_s)
    if budget.why_not(stage, min(drain_s, 1)) is None:
        bounded = budget.bounded(stage, min(drain_s, 1))
        assert bounded.duration_s is not None
        assert spent_s + bounded.duration_s + budget.drain_ns(bounded, drain_s) / 1e9 <= 60 + 1e-6
        assert budget.drain_ns(bounded, drain_s) <= drain_s * 1e9


def lasted(phase: str, seconds: float, duration_s: float | None = 10) -> Lasted:
    return Lasted(Stage(phase=phase, duration_s=duration_s), seconds)


def test_the_last_answers_take_as_long_as_at_the_last_stage_of_the_phase_or_what_is_usual() -> None:
    done = [lasted("a", 11), lasted("a", 12), lasted("b", 17), lasted("b", 15), lasted("c", 99, None), lasted("d", 4)]
    assert [likely_drain_s(Stage(phase=phase), done) for phase in ("a", "b", "d", "new")] == [2, 5, 0, 2]
    assert likely_drain_s(Stage(), []) == likely_drain_s(Stage(), done[4:5]) == 0
