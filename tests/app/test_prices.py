"""Prices from the command line."""

import pytest

from withstand.app.prices import prices_of, token_price_of
from withstand.errors import UsageError
from withstand.spec import TokenPrice


def test_one_price_is_for_all_and_a_named_one_for_its_side() -> None:
    sides = {"a": None, "b": None}
    assert prices_of(["2.5"], sides) == {"a": 2.5, "b": 2.5}
    assert prices_of(["b=4", "2.5"], sides) == {"a": 2.5, "b": 4.0}
    assert prices_of(["x=1=4"], {"x=1": None}) == {"x=1": 4.0}
    assert prices_of([], sides) == {}


def test_what_is_typed_wins_over_what_a_plan_says() -> None:
    told = {"a": 2.0, "b": 3.0, "c": None}
    assert prices_of([], told) == {"a": 2.0, "b": 3.0}
    assert prices_of(["a=4"], told) == {"a": 4.0, "b": 3.0}
    assert prices_of(["5"], told) == {"a": 5.0, "b": 5.0, "c": 5.0}


@pytest.mark.parametrize("word", ["free", "0", "-1", "inf", "nan", "1e-300", "1e300", "c=2", "a="])
def test_what_is_no_price_is_told(word: str) -> None:
    with pytest.raises(UsageError, match="--price-per-hour"):
        prices_of([word], {"a": None, "b": 1.0})


def test_what_tokens_cost_elsewhere() -> None:
    assert token_price_of("0.15:0.60") == TokenPrice(input=0.15, output=0.6)
    assert token_price_of("0:0.6:0") == TokenPrice(input=0, output=0.6, cached_input=0)


@pytest.mark.parametrize("word", ["", "1", "1:", "1:2:3:4", "-1:2", "nan:1", "inf:1", "0:0", "a:b"])
def test_what_is_no_price_of_tokens_is_told(word: str) -> None:
    with pytest.raises(UsageError, match="--against-token-price"):
        token_price_of(word)
