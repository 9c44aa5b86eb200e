"""A name that is not known is told with what was meant."""

from typing import Any

import pytest

from withstand.errors import SpecError
from withstand.gateway.config import config_of
from withstand.hints import hinted, meant
from withstand.spec import Plan, parse_plan
from withstand.spec.stack import stack_of


@pytest.mark.parametrize(
    ("tree", "hint"),
    [
        ({"stages": [{"num_prompt": 3}]}, "unknown field `num_prompt` (did you mean num_prompts?) - at `$.stages[0]`"),
        ({"stages": [{"arrivals": {"kind": "poison", "rate": 3}}]}, "'poison' (did you mean poisson?)"),
        ({"goodputs": {}}, "(did you mean goodput?)"),
        ({"target": {"timeouts": {"conect_s": 3}}}, "(did you mean connect_s?)"),
        ({"targets": {"a": {"base_ulr": "http://x"}}}, "(did you mean base_url?) - at `$.targets.a`"),
        ({"find_limit": {"axis": "both"}}, "'both' (there are: concurrency, rate)"),
    ],
)
def test_a_plan_says_what_was_meant(tree: dict[str, Any], hint: str) -> None:
    with pytest.raises(SpecError) as told:
        parse_plan(tree)
    assert hint in str(told.value)


def test_so_do_a_stack_and_a_gateway() -> None:
    with pytest.raises(SpecError, match="did you mean model"):
        stack_of({"engines": {"a": {"kind": "vllm", "modle": "x"}}}, "s")
    with pytest.raises(SpecError, match="did you mean aliases"):
        config_of({"models": {"m": {"engines": [], "alias": ["x"]}}})


def test_of_what_is_like_nothing_all_is_listed_if_that_is_little() -> None:
    assert meant("zzz", ("a", "b")) == " (there are: a, b)"
    assert meant("zzz", map(str, range(100))) == ""
    assert meant("zzz", ()) == ""


def test_other_messages_stay_as_they_are() -> None:
    told = "Expected `float` > 0.0 - at `$.stages[0].arrivals.rate`"
    assert hinted(told, Plan) == told
    assert hinted("Object contains unknown field `zzz` - at `$.no.such.path`", Plan).count("(") == 0
