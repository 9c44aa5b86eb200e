"""What tokens cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.metrics.cost import busiest_within, per_million, priced
from withstand.metrics.summary import Distribution, Load, StageSummary
from withstand.spec import Price

NONE = Distribution(n=0)
PRICE = Price(per_hour=3.6)


def stage(name: str, rps: float, good: float | None) -> StageSummary:
    """Of 100 s; 100 prompt tokens and 50 output tokens a request; ``good`` of those asked kept the limits."""
    n = int(rps * 100)
    return StageSummary(
        name=name, load=Load(), attempted=n, completed=n, failed=0, duration_s=100.0, request_throughput=rps,
        request_goodput=None if good is None else good * rps, output_throughput=50 * rps,
        total_input_tokens=100 * n, total_output_tokens=50 * n,
        ttft=NONE, tpot=NONE, itl=NONE, e2el=NONE, response=NONE, ttft_scheduled=NONE, lateness=NONE,
    )  # fmt: skip


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
