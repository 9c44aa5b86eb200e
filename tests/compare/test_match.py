import pytest

from compared import SETTING, records_of, run_of, side_of
from withstand.compare.match import match
from withstand.compare.run import ComparedRun
from withstand.compare.setting import departures
from withstand.errors import UsageError


def _run(**setting: object) -> ComparedRun:
    return run_of(records_of([20.0 + i % 3 for i in range(40)]), **setting)


def test_what_must_be_equal_and_is_not_is_named_and_refused() -> None:
    sides = [side_of("a", _run(input_tokens=1000.0)), side_of("b", _run(input_tokens=128.0))]
    with pytest.raises(
        UsageError,
        match=r"not comparable at 5 req/s: prompt length 1000 against 128; .*by `withstand compare --force`\.",
    ):
        match(sides, force=False)


def test_forced_it_is_compared_and_marked() -> None:
    sides = [side_of("a", _run(model="one")), side_of("b", _run(model="two"))]
    matching = match(sides, force=True)
    assert matching.forced
    assert "model one against two" in matching.groups[0].remarks[0]


def test_lengths_within_a_twentieth_and_paths_of_one_model_are_equal() -> None:
    one, other = _run(input_tokens=1000.0, model="meta/Llama"), _run(input_tokens=1020.0, model="/models/llama/")
    assert departures(one.setting, other.setting) == {}


def test_what_one_side_does_not_tell_is_no_difference_but_said() -> None:
    matching = match([side_of("a", _run()), side_of("b", _run(model=None))], force=False)
    assert "model" in matching.groups[0].remarks[0]


def test_a_ramp_with_a_cap_is_no_closed_loop() -> None:
    ramp = _run(rate=None, arrivals="ramp", concurrency=64)
    assert ramp.setting.load == "ramp, concurrency 64"
    assert _run(rate=None, arrivals="inf", concurrency=64).setting.load == "concurrency 64"
    with pytest.raises(UsageError, match="no load in common"):
        match([side_of("a", ramp), side_of("b", _run(rate=None, arrivals="inf", concurrency=64))], force=False)


@pytest.mark.parametrize(
    ("field", "value"), [("client", "vLLM"), ("dataset", "sharegpt"), ("arrivals", "constant"), ("burstiness", 0.5)]
)
def test_every_condition_counts(field: str, value: object) -> None:
    own = {"burstiness": 1.0} if field == "burstiness" else {}
    with pytest.raises(UsageError, match="not comparable"):
        match([side_of("a", _run(**own)), side_of("b", _run(**{field: value}))], force=False)


def test_the_number_of_prompts_counts_where_it_makes_the_queue() -> None:
    at_once = {"rate": None, "arrivals": "inf"}
    with pytest.raises(UsageError, match="number of prompts 100 against 200"):
        match(
            [side_of("a", _run(**at_once, num_prompts=100)), side_of("b", _run(**at_once, num_prompts=200))],
            force=False,
        )
    assert match([side_of("a", _run(num_prompts=100)), side_of("b", _run(num_prompts=200))], force=False).groups


def test_runs_under_the_same_conditions_are_repeats() -> None:
    other = run_of(records_of([20.0 + i % 7 for i in range(40)]))
    matching = match([side_of("a", _run(), other), side_of("b", _run())], force=False)
    assert [len(runs) for runs in matching.groups[0].members] == [2, 1]


def test_what_has_no_partner_is_named() -> None:
    sides = [side_of("a", _run(), _run(rate=10.0)), side_of("b", _run(), _run(rate=20.0))]
    matching = match(sides, force=False)
    assert [(u.side, u.what) for u in matching.unmatched] == [(0, "10 req/s"), (1, "20 req/s")]
    assert [group.label for group in matching.groups] == ["5 req/s"]


def test_no_load_in_common_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no load in common \(5 req/s; concurrency 8\)"):
        match([side_of("a", _run()), side_of("b", _run(rate=None, concurrency=8))], force=False)


def test_engines_of_one_file_are_no_repeats() -> None:
    mixed = side_of("file", _run(labels={"engine": "one"}), _run(labels={"engine": "two"}))
    with pytest.raises(UsageError, match="--by engine"):
        match([mixed, side_of("b", _run())], force=False)


def test_groups_come_by_rate() -> None:
    a, b = (side_of(name, *(_run(rate=rate) for rate in (20.0, 5.0, 10.0))) for name in "ab")
    assert [group.label for group in match([a, b], force=False).groups] == ["5 req/s", "10 req/s", "20 req/s"]
    assert SETTING.load == "5 req/s"


def test_groups_of_one_load_are_told_apart_by_what_else_differs() -> None:
    a, b = (side_of(name, *(_run(input_tokens=n) for n in (64.0, 128.0))) for name in "ab")
    assert [group.label for group in match([a, b], force=False).groups] == [
        "5 req/s, prompt length 64",
        "5 req/s, prompt length 128",
    ]


def test_forced_two_loads_are_compared_where_there_is_one_a_side() -> None:
    sides = [side_of("a", _run(rate=5.0)), side_of("b", _run(rate=None, concurrency=4))]
    with pytest.raises(UsageError, match=r"no load in common.*by `withstand compare --force`\."):
        match(sides, force=False)
    matching = match(sides, force=True)
    assert matching.forced
    assert "load 5 req/s against concurrency 4" in matching.groups[0].remarks[0]
    assert matching.groups[0].label == "5 req/s against concurrency 4"


def test_a_copy_is_refused_as_a_repeat_and_taken_as_another_side() -> None:
    run, other = _run(), run_of(records_of([20.0 + i % 7 for i in range(40)]))
    with pytest.raises(UsageError, match="a holds one run twice"):
        match([side_of("a", run, other, run), side_of("b", other)], force=False)
    assert match([side_of("a", run), side_of("b", run)], force=False).groups
