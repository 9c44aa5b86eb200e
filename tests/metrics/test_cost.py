"""What tokens cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billed import stage
from withstand.metrics.cost import busiest_within, per_million, priced
from withstand.metrics.energy import Energy
from withstand.metrics.server import ServerSide
from withstand.metrics.summary import Interval, StageCost, StageSummary
from withstand.spec import Price, TokenPrice

PRICE = Price(per_hour=3.6)
TWO_GPUS = ServerSide(gpus=2)


def test_a_machine_of_3_60_an_hour_that_makes_1000_tokens_a_second() -> None:
    assert per_million(3.60, 1000.0) == pytest.approx(1.0)
    assert per_million(3.60, 0.0) is None
    assert per_million(3.60, None) is None


@given(st.floats(0.01, 1000), st.floats(0.01, 1e6))
def test_an_hour_s_tokens_cost_an_hour(price: float, tokens_per_s: float) -> None:
    cost = per_million(price, tokens_per_s)
    assert cost is not None
    assert cost * tokens_per_s * 3600 / 1e6 == pytest.approx(price)


def test_the_limits_choose_the_busiest_stage_that_keeps_them() -> None:
    stages = [priced(s, PRICE, 0.99) for s in (stage("a", 1, 1.0), stage("b", 4, 0.995), stage("c", 8, 0.6))]
    assert [s.cost and s.cost.holds for s in stages] == [True, True, False]
    best = busiest_within(stages)
    assert best is stages[1]
    assert best.cost is not None
    assert best.cost.per_million_output == pytest.approx(5.0)
    assert best.cost.per_million_input == pytest.approx(2.5)


def test_without_limits_no_stage_is_within_them() -> None:
    one = priced(stage("a", 1, None), PRICE, 0.99)
    assert busiest_within([one]) is None
    assert one.cost is not None
    assert one.cost.holds is None


def test_without_a_price_nothing_costs_anything() -> None:
    assert priced(stage("a", 1, 1.0), Price(), 0.99).cost is None


def cost_of(one: StageSummary, price: Price = PRICE, **rates: Interval) -> StageCost:
    cost = priced(one, price, 0.99, rates).cost
    assert cost is not None
    return cost


def test_a_price_of_a_gpu_is_one_of_those_that_were_in_use_or_that_were_told() -> None:
    one = stage(server=TWO_GPUS)
    assert cost_of(one, Price(per_gpu_hour=2.0)).price_per_hour == 4.0
    assert cost_of(one, Price(per_gpu_hour=2.0)).gpus == 2
    assert cost_of(one, Price(per_gpu_hour=2.0, gpus=8)).price_per_hour == 16.0
    assert cost_of(one).gpus is None
    assert priced(stage(), Price(per_gpu_hour=2.0)).cost is None, "nobody knows of how many"


def test_tokens_of_answers_that_broke_a_limit_are_paid_by_those_that_kept_it() -> None:
    cost = cost_of(stage(rps=4, good=0.5))
    assert cost.per_million_output == pytest.approx(5.0)
    assert cost.per_million_good_output == pytest.approx(10.0)
    assert cost_of(stage(rps=4)).per_million_good_output is None
    assert cost_of(stage(rps=4, good=0.0)).per_million_good_output is None, "no price buys what there is none of"


def test_failed_requests_are_paid_by_those_that_were_answered() -> None:
    whole = cost_of(stage(rps=4))
    half = cost_of(stage(rps=2, attempted=400, failed=200))
    assert whole.per_request == pytest.approx(0.001 / 4)
    assert half.per_request == pytest.approx(0.001 / 2)


@given(st.floats(0.1, 100), st.floats(0.1, 1), st.floats(1, 10))
def test_an_interval_of_a_rate_is_one_of_its_price_turned_about(rps: float, below: float, above: float) -> None:
    span = Interval(50 * rps * below, 50 * rps * above)
    cost = cost_of(stage(rps=rps), output_throughput=span, request_throughput=Interval(rps * below, rps * above))
    assert cost.per_million_output is not None
    ends = cost.per_million_output_interval
    assert ends == Interval(
        pytest.approx(cost.per_million_output / above), pytest.approx(cost.per_million_output / below)
    )
    assert cost.per_request is not None
    assert cost.per_request_interval == Interval(
        pytest.approx(cost.per_request / above), pytest.approx(cost.per_request / below)
    )
    assert cost_of(stage(rps=rps), output_throughput=Interval(span.low, None)).per_million_output_interval == Interval(
        None, pytest.approx(cost.per_million_output / below)
    )


def test_power_is_priced_by_itself() -> None:
    one = stage(energy=Energy(gpus=1, gpus_seen=1, kwh_per_million_output=2.0))
    price = Price(per_hour=3.6, per_kwh=0.25)
    assert cost_of(one, price).power_per_million_output == 0.5
    assert cost_of(one, price).per_million_output == cost_of(one).per_million_output
    assert cost_of(one).power_per_million_output is None


def test_at_each_load_it_is_said_how_much_cheaper_than_tokens() -> None:
    price = Price(per_hour=3.6, against=TokenPrice(input=3.0, output=6.0))
    cost = cost_of(stage(rps=4), price)
    assert cost.elsewhere_per_request == pytest.approx(0.0006)
    assert cost.times_cheaper == pytest.approx(2.4)
    assert cost_of(stage(rps=1), price).times_cheaper == pytest.approx(0.6)
    assert cost_of(stage(rps=1, total_input_tokens=None), price).times_cheaper is None
