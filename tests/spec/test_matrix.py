"""Lists in a plan become one stage for each combination, named after what varies; errors name the key in the file."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.errors import SpecError
from withstand.spec import Plan, Poisson, parse_plan
from withstand.spec.matrix import STAGES_MAX


def names(tree: dict[str, Any]) -> list[str]:
    return [stage.name for stage in parse_plan(tree).stages]


def poisson(rate: object) -> dict[str, object]:
    return {"kind": "poisson", "rate": rate}


def test_a_list_of_rates_or_of_concurrencies_is_as_many_stages() -> None:
    assert names({"stages": [{"arrivals": poisson([1, 2.5])}]}) == ["rate-1", "rate-2.5"]
    assert names({"stages": [{"name": "steady", "max_concurrency": [1, 8]}]}) == [
        "steady concurrency-1",
        "steady concurrency-8",
    ]


def test_lengths_vary_slower_than_loads_and_are_a_heading() -> None:
    plan = parse_plan(
        {
            "stages": [
                {
                    "arrivals": poisson([1, 4]),
                    "workload": {"dataset": "synthetic", "options": {"input_len": [128, 512], "output_len": 9}},
                    "duration_s": 3,
                }
            ]
        }
    )
    assert [(s.phase, s.name) for s in plan.stages] == [
        ("in-128", "in-128 rate-1"),
        ("in-128", "in-128 rate-4"),
        ("in-512", "in-512 rate-1"),
        ("in-512", "in-512 rate-4"),
    ]
    last = plan.stages[-1]
    assert last.workload is not None
    assert (last.arrivals, last.duration_s) == (Poisson(4.0), 3)
    assert (last.workload.dataset, last.workload.options) == ("synthetic", {"input_len": 512, "output_len": 9})


def test_a_heading_of_ones_own_stays() -> None:
    (stage,) = parse_plan({"stages": [{"phase": "baseline", "workload": {"options": {"input_len": [9]}}}]}).stages
    assert (stage.phase, stage.name) == ("baseline", "in-9")


def test_every_stage_is_measured_with_each_workload_and_a_warm_up_with_one() -> None:
    plan = parse_plan(
        {
            "workload": {"num_prompts": 7, "options": {"output_len": 5}},
            "workloads": {"chat": {"dataset": "conversations"}, "long": {"options": {"input_len": [128, 512]}}},
            "stages": [
                {"name": "warm", "warmup": True},
                {"max_concurrency": [1, 2]},
                {"name": "own", "workload": {"dataset": "synthetic"}},
            ],
        }
    )
    assert [s.name for s in plan.stages] == [
        "warm",
        "chat concurrency-1",
        "chat concurrency-2",
        "long in-128 concurrency-1",
        "long in-128 concurrency-2",
        "long in-512 concurrency-1",
        "long in-512 concurrency-2",
        "own",
    ]
    warm, chat, *_, own = (stage.workload for stage in plan.stages)
    assert warm is not None
    assert chat is not None
    assert own is not None
    assert (warm.dataset, chat.dataset, own.dataset) == ("conversations", "conversations", "synthetic")
    assert (chat.num_prompts, chat.options) == (7, {"output_len": 5})


def test_lists_of_the_plans_workload_are_for_the_stages_without_one() -> None:
    tree = {"workload": {"options": {"input_len": [1, 2]}}, "stages": [{}, {"workload": {}}]}
    assert names(tree) == ["in-1 stage-1", "in-2 stage-1", "stage-2"]
    assert names({"workload": {"options": {"input_len": [1, 2]}}}) == ["in-1", "in-2"]
    assert parse_plan(tree).workload.options == {"input_len": 1}


def test_any_option_of_a_dataset_may_vary() -> None:
    options = {"think_s": [0, 0.5], "think_distribution": ["constant", "exponential"]}
    assert names({"workload": {"dataset": "conversations", "options": options}})[:2] == [
        "think-s-0 think-distribution-constant",
        "think-s-0 think-distribution-exponential",
    ]


values = st.lists(st.integers(1, 10**5), min_size=1, max_size=4, unique=True)


@given(values, values, values, values)
def test_the_product_has_every_combination_once_under_a_name_of_its_own(
    rates: list[int], caps: list[int], inputs: list[int], outputs: list[int]
) -> None:
    tree = {
        "stages": [
            {
                "arrivals": poisson(rates),
                "max_concurrency": caps,
                "workload": {"options": {"input_len": inputs, "output_len": outputs}},
            }
        ]
    }
    before = msgspec.json.encode(tree)
    plan = parse_plan(tree)
    assert len({stage.name for stage in plan.stages}) == math.prod(map(len, (rates, caps, inputs, outputs)))
    asked = {(r, c, i, o) for r in rates for c in caps for i in inputs for o in outputs}
    assert {_values(plan, place) for place in range(len(plan.stages))} == asked
    assert msgspec.json.encode(tree) == before


def _values(plan: Plan, place: int) -> tuple[object, ...]:
    stage = plan.stages[place]
    assert isinstance(stage.arrivals, Poisson)
    assert stage.workload is not None
    options = stage.workload.options
    return int(stage.arrivals.rate), stage.max_concurrency, options["input_len"], options["output_len"]


@given(values, values)
def test_a_stage_is_named_alike_whatever_stands_beside_it(caps: list[int], inputs: list[int]) -> None:
    """Its seed is made of its name: the same requests, in a matrix or alone."""
    one = {"max_concurrency": caps, "workload": {"options": {"input_len": inputs}}}
    more = one | {"max_concurrency": [10**6, *caps]}
    assert set(names({"stages": [one]})) < set(names({"stages": [{"name": "other"}, more]}))


@given(values, values)
def test_a_plan_made_of_lists_is_a_plan_like_any_other(caps: list[int], inputs: list[int]) -> None:
    plan = parse_plan(
        {"workloads": {"a": {"options": {"input_len": inputs}}, "b": {}}, "stages": [{"max_concurrency": caps}]}
    )
    assert parse_plan(msgspec.to_builtins(plan)) == plan


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        ({"stages": [{}, {"arrivals": poisson([1, 0])}]}, "$.stages[1].arrivals.rate[1]"),
        ({"stages": [{"max_concurrency": [1, 2]}, {"max_concurrency": [4, "x"]}]}, "$.stages[1].max_concurrency[1]"),
        ({"stages": [{"max_concurrency": [1, 2]}, {"arivals": 1}]}, "$.stages[1]"),
        ({"stages": [{"max_concurrency": []}]}, "$.stages[0].max_concurrency"),
        ({"stages": [{"max_concurrency": [4, 4]}]}, "$.stages[0].max_concurrency"),
        ({"stages": [{"workload": {"options": {"input_len": []}}}]}, "$.stages[0].workload.options.input_len"),
        ({"workload": {"options": {"input_len": []}}}, "$.workload.options.input_len"),
        ({"workloads": {"a": {"options": {"input_len": [1, 1]}}}}, "$.workloads.a.options.input_len"),
        ({"workloads": {"a": {"num_prompts": 0}}}, "$.workloads"),
        ({"stages": [{"max_concurrency": [1, 2]}, {"name": "concurrency-2"}]}, "$.stages[1].name"),
        ({"stages": [{"num_prompts": [1, 2]}]}, "$.stages[0].num_prompts"),
    ],
)
def test_errors_name_the_key_in_the_file(tree: dict[str, Any], path: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_plan(tree)
    assert f"`{path}" in str(caught.value)


def test_more_stages_than_anybody_can_mean_are_refused_before_they_are_made() -> None:
    long = list(range(1, 10**5))
    with pytest.raises(SpecError, match=rf"9,999,800,001 stages .* {STAGES_MAX:,} .*`\$\.stages\[0\]`"):
        parse_plan({"stages": [{"max_concurrency": long, "arrivals": poisson(long)}]})
    assert len(names({"stages": [{"max_concurrency": list(range(1, STAGES_MAX + 1))}]})) == STAGES_MAX
    with pytest.raises(SpecError, match=r"1,001 stages"):
        parse_plan({"stages": [{"max_concurrency": list(range(1, STAGES_MAX + 1))}, {"name": "one more"}]})


@pytest.mark.parametrize(
    "tree", [{"stages": 5}, {"stages": [5]}, {"workload": 5}, {"workloads": 5}, {"workloads": {"a": 5}}, {"stages": []}]
)
def test_other_shapes_are_left_to_the_types(tree: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="The plan is wrong"):
        parse_plan(tree)


def test_cycles_go_through_the_stages_again_under_names_of_their_own_and_warm_up_once() -> None:
    stages = [{"name": "first", "warmup": True}, {"name": "cold", "cold": True}, {"max_concurrency": [1, 2]}]
    tree = {"cycles": 2, "stages": stages}
    loads = ["concurrency-1", "concurrency-2"]
    assert names(tree) == [
        *("first", "cold-1", *(f"{load}-1" for load in loads)),
        *("cold-2", *(f"{load}-2" for load in loads)),
    ]
    assert names({"cycles": 1, "stages": [{}]}) == ["stage-1"]
    assert names({"cycles": 2, "stages": [{}]}) == ["stage-1-1", "stage-1-2"]


@pytest.mark.parametrize("cycles", [0, 101, "six", True])
def test_cycles_that_cannot_be_are_refused_by_their_key(cycles: object) -> None:
    with pytest.raises(SpecError, match=r"\$\.cycles"):
        parse_plan({"cycles": cycles, "stages": [{}]})


def test_cycles_make_no_more_stages_than_a_plan_may_have() -> None:
    tree = {"cycles": 100, "stages": [{"max_concurrency": list(range(1, 12))}]}
    with pytest.raises(SpecError, match=r"more than the 1,000 .* `\$\.cycles`"):
        parse_plan(tree)


def test_a_list_in_a_list_is_one_stage_that_is_named_by_what_is_in_it() -> None:
    kinds = ["calculator", ["search", "calculator"]]
    plan = parse_plan({"workload": {"dataset": "agent", "options": {"kinds": kinds}}})
    assert [stage.name for stage in plan.stages] == ["kinds-calculator", "kinds-search,calculator"]
    assert [stage.workload.options["kinds"] for stage in plan.stages if stage.workload] == kinds
