"""A plan's stages made whole: counts, warm-ups, workers. Pure."""

import pytest

from withstand.app.stages import all_stages, connections_foreseen, connections_of, preconnect_of, stripes_of
from withstand.errors import SpecError
from withstand.spec import Constant, Inf, Plan, Poisson, Stage, Step, StepPart, Target, Until, Workload

LOAD = Workload(num_prompts=40)


def plan(*stages: Stage, **more: object) -> Plan:
    return Plan(workload=LOAD, stages=stages, **more)


def test_a_warm_up_stands_in_front_and_may_repeat_rows() -> None:
    warmup, measured = all_stages(plan(Stage(name="a", max_concurrency=3), num_warmups=5))
    assert (warmup.warmup, warmup.num_prompts, warmup.max_concurrency) == (True, 5, 3)
    assert warmup.workload is not None
    assert warmup.workload.repeat
    assert (measured.name, measured.num_prompts, measured.workload) == ("a", 40, LOAD)


def test_no_warm_up_where_none_is_wanted_or_the_plan_has_its_own() -> None:
    assert len(all_stages(plan(Stage(name="a"), num_warmups=0))) == 1
    assert len(all_stages(plan(Stage(name="w", warmup=True), Stage(name="a")))) == 2
    assert all_stages(plan(Stage(name="warm-up")))[0].name == "warm-up-0"


def test_a_duration_alone_sets_no_count() -> None:
    (stage,) = all_stages(plan(Stage(name="a", arrivals=Poisson(3), duration_s=9), num_warmups=0))
    assert (stage.num_prompts, stage.duration_s) == (None, 9)


def test_steps_last_as_long_as_their_parts() -> None:
    steps = Step((StepPart(5, 2), StepPart(0, 1)))
    (stage,) = all_stages(plan(Stage(name="a", arrivals=steps), num_warmups=0))
    assert (stage.num_prompts, stage.duration_s) == (None, 3)


def test_what_would_never_end_is_refused() -> None:
    with pytest.raises(SpecError, match=r"stages\[1\]"):
        all_stages(plan(Stage(name="a"), Stage(name="b", duration_s=3)))


@pytest.mark.parametrize(
    ("stage", "cores", "workers"),
    [
        (Stage(arrivals=Constant(10)), 8, 1),
        (Stage(arrivals=Constant(2500)), 8, 3),
        (Stage(arrivals=Constant(2500)), 2, 2),
        (Stage(max_concurrency=4000), 8, 4),
        (Stage(num_prompts=3000), 8, 3),
    ],
)
def test_workers_follow_the_load_and_the_cores(stage: Stage, cores: int, workers: int) -> None:
    assert stripes_of(Plan(), stage, cores).workers == workers


def test_a_fleet_of_nodes_has_a_worker_on_each_unless_told_otherwise() -> None:
    stage = Stage(arrivals=Constant(10))
    assert stripes_of(Plan(), stage, 8, nodes=3).workers == 3
    assert stripes_of(Plan(workers=7), stage, 8, nodes=3).workers == 7
    assert stripes_of(Plan(), Stage(max_concurrency=2), 8, nodes=3).workers == 2


def test_what_a_calibration_says_goes_before_the_rule_but_not_before_the_user_or_the_cores() -> None:
    stage = Stage(arrivals=Constant(2500))
    assert stripes_of(Plan(), stage, 8, needed=5).workers == 5
    assert stripes_of(Plan(), stage, 8, needed=1).workers == 1
    assert stripes_of(Plan(), stage, 4, needed=5).workers == 4
    assert stripes_of(Plan(workers=2), stage, 8, needed=5).workers == 2


def test_slots_are_dealt_out_whole() -> None:
    stripes = stripes_of(Plan(workers=4), Stage(max_concurrency=10, duration_s=5), 8)
    assert [stripes.cap_of(i) for i in range(4)] == [3, 3, 2, 2]
    assert (stripes.closed, stripes.endless) == (True, True)
    assert stripes_of(Plan(workers=4), Stage(max_concurrency=3), 8).workers == 3


def test_connections_that_can_be_known() -> None:
    assert connections_of(Stage(arrivals=Inf(), num_prompts=2000)) == 2000
    assert connections_of(Stage(max_concurrency=50, num_prompts=20)) == 20
    assert connections_of(Stage(arrivals=Poisson(5), num_prompts=20)) is None


def test_connections_opened_beforehand_are_foreseen_but_a_warm_up_opens_none() -> None:
    warmup, few, open_loop = all_stages(
        plan(
            Stage(name="a", max_concurrency=3),
            Stage(name="b", arrivals=Poisson(3)),
            target=Target(preconnect=50),
            num_warmups=5,
        )
    )
    told = plan(target=Target(preconnect=50))
    assert [preconnect_of(told, stage) for stage in (warmup, few, open_loop)] == [0, 50, 50]
    assert [connections_foreseen(told, stage) for stage in (warmup, few, open_loop)] == [3, 50, 50]
    assert connections_foreseen(plan(), few) == 3
    assert connections_foreseen(plan(), open_loop) is None


def test_a_stages_own_rules_are_laid_over_the_plans_and_a_warm_up_has_none() -> None:
    own = Stage(name="b", until=Until(errors=0.5, queue="grows"))
    warmup, plain, laid = all_stages(plan(Stage(name="a"), own, until=Until(errors=0.2)))
    assert (warmup.until, plain.until) == (None, Until(errors=0.2))
    assert laid.until == Until(errors=0.5, queue="grows")
