"""A machine by the hour against tokens by the million."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billed import stage
from withstand.metrics.breakeven import Mix, break_even, in_words, mix_of, per_request, times_cheaper
from withstand.metrics.ledger import Column, Ledger
from withstand.metrics.summary import Interval, Sustained
from withstand.spec import TokenPrice

PRICE = TokenPrice(input=3.0, output=9.0)
MIX = Mix(1000, 200)


def largest(rps: float, interval: Interval | None = None) -> Sustained:
    return Sustained(rps=rps, interval=interval, stage="s", within_limits=None)


def test_a_request_costs_its_tokens() -> None:
    assert per_request(MIX, PRICE) == pytest.approx(0.003 + 0.0018)


def test_cached_input_has_its_own_price() -> None:
    cheap = TokenPrice(input=3.0, output=9.0, cached_input=0.3)
    assert per_request(Mix(1000, 200, cached_share=0.5), cheap) == pytest.approx(0.0015 + 0.00015 + 0.0018)


def test_the_machine_pays_from_so_many_requests_on() -> None:
    found = break_even(MIX, PRICE, 3.6, largest(1.0, Interval(0.5, 2.0)))
    assert found is not None
    assert found.rate_rps == pytest.approx(0.001 / 0.0048)
    assert found.utilisation == pytest.approx(found.rate_rps)
    assert found.input_tokens_per_day == pytest.approx(found.rate_rps * 86_400 * 1000)
    assert found.output_tokens_per_day == pytest.approx(found.rate_rps * 86_400 * 200)
    assert found.times_cheaper == pytest.approx(4.8)
    assert found.times_interval == Interval(pytest.approx(2.4), pytest.approx(9.6))


def test_one_that_is_never_cheaper() -> None:
    found = break_even(MIX, PRICE, 3.6, largest(0.1))
    assert found is not None
    assert found.utilisation > 1
    assert in_words(found.times_cheaper) == "2.08 times dearer"


@given(st.floats(0.01, 1e4), st.floats(0, 1e3), st.floats(0.01, 1e3), st.floats(1, 1e5), st.floats(1, 1e5))
def test_at_break_even_both_bills_are_equal(
    per_hour: float, in_price: float, out_price: float, tokens_in: float, tokens_out: float
) -> None:
    price = TokenPrice(input=in_price, output=out_price)
    found = break_even(Mix(tokens_in, tokens_out), price, per_hour, largest(1.0))
    assert found is not None
    assert times_cheaper(found.rate_rps, per_hour, found.elsewhere_per_request) == pytest.approx(1.0)
    bill = found.input_tokens_per_day * in_price / 1e6 + found.output_tokens_per_day * out_price / 1e6
    assert bill == pytest.approx(24 * per_hour)
    assert (found.times_cheaper >= 1) == (found.utilisation <= 1) or found.utilisation == pytest.approx(1)


def test_the_mix_is_of_answers_and_cached_is_what_they_say() -> None:
    one = stage(ledger=Ledger(cached=Column(answers=100, tokens=2500)))
    with_price = TokenPrice(input=3.0, output=9.0, cached_input=0.3)
    assert mix_of(one, with_price) == Mix(100, 50, 0.25)
    assert mix_of(one, PRICE) == Mix(100, 50, 0.0), "without a price of its own it is input as any other"
    assert mix_of(stage(completed=0), PRICE) is None
