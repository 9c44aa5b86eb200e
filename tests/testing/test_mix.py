"""Behaviours by name, together, and in shares that are known beforehand."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.errors import UsageError
from withstand.testing.truth import tally
from withstand.testing.truth.behaviours import check_mix, chosen, style_of
from withstand.testing.truth.config import Config
from withstand.testing.truth.framed import gzipped
from withstand.testing.truth.spelled import crlf

MIX = {"plain": 0.9, "http_500": 0.05, "limited": 0.05}


@given(st.integers(0, 2**32))
def test_shares_are_exact_whatever_the_seed(seed: int) -> None:
    assert tally(MIX, seed, 400) == {"plain": 360, "http_500": 20, "limited": 20}


def test_counts_of_any_number_of_requests_are_known_beforehand() -> None:
    assert tally(MIX, 3, 37) == Counter(chosen(MIX, 3, number) for number in range(37))


def test_the_order_is_shuffled_by_seed() -> None:
    orders = {tuple(chosen(MIX, seed, number) for number in range(100)) for seed in range(5)}
    assert len(orders) == 5


def test_small_shares_are_exact_too() -> None:
    assert tally({"plain": 0.9999, "hang": 0.0001}, 0, 10_000)["hang"] == 1


@pytest.mark.parametrize("mix", [{"plain": 0.5}, {"plain": 1.5, "hang": -0.5}, {"plain": 0.99999, "hang": 0.00001}, {}])
def test_shares_that_cannot_be_exact_are_refused(mix: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="sum to 1"):
        check_mix(mix)


@pytest.mark.parametrize("text", ["nonsense", "crlf+nonsense", "", "crlf:3", "stall:x", "stall:-1", "stall:inf"])
def test_what_is_no_behaviour_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="behaviour: "):
        style_of(text)


def test_a_server_refuses_it_where_it_was_written() -> None:
    with pytest.raises(UsageError, match="'nonsense' is unknown"):
        Config(behaviour={"plain": 0.5, "nonsense": 0.5})


def test_several_behaviours_at_once() -> None:
    style = style_of("reasoning:8+crlf+gzip")
    assert style.thinking
    assert (style.thinking.tokens, style.spell, style.frame) == (8, crlf, gzipped)
