"""Prices from the command line."""

import pytest

from withstand.app.prices import prices_of
from withstand.errors import UsageError


def test_one_price_is_for_all_and_a_named_one_for_its_side() -> None:
    assert prices_of(["2.5"], ["a", "b"]) == {"a": 2.5, "b": 2.5}
    assert prices_of(["b=4", "2.5"], ["a", "b"]) == {"a": 2.5, "b": 4.0}
    assert prices_of(["x=1=4"], ["x=1"]) == {"x=1": 4.0}
    assert prices_of([], ["a"]) == {}


@pytest.mark.parametrize("word", ["free", "0", "-1", "inf", "nan", "c=2", "a="])
def test_what_is_no_price_is_told(word: str) -> None:
    with pytest.raises(UsageError, match="--price-per-hour"):
        prices_of([word], ["a", "b"])
