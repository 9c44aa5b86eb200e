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


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("`float | null`, got `str`", "a number, and not a text"),
        ("`float` > 0.0", "a number above 0.0"),
        ("`int` <= 64", "a whole number of at most 64"),
        ("`int | float`, got `bool`", "a number, and not true or false"),
        ("`str | object | null`, got `array`", "a text or a table of keys, and not a list"),
        ("`array` of length >= 1", "a list that is not empty"),
        ("`str`, got `int`", "a text, and not a whole number; put it in quotes"),
        ("`str` matching regex '^/[!-~]*$'", "a text that begins with / and is ASCII without spaces"),
        ("`object`, got `null`", "a table of keys, and not nothing"),
    ],
)
def test_types_are_told_in_words(told: str, words: str) -> None:
    at = " - at `$.stages[0].arrivals.rate`"
    assert hinted(f"Expected {told}{at}", Plan) == f"Expected {words}{at}"


def test_of_a_path_that_is_not_there_nothing_is_guessed() -> None:
    assert hinted("Object contains unknown field `zzz` - at `$.no.such.path`", Plan).count("(") == 0
