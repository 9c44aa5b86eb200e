"""A machine that is given back when it is idle: the formulas against a simulation that knows none of them."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.metrics.idle import DAY_S, Day, Demand, by_gaps, scaled_to_zero


def demand(**changes: float) -> Demand:
    told = {"requests": 500.0, "busy_s": DAY_S, "service_s": 5.0, "timeout_s": 300.0, "cold_start_s": 60.0}
    return Demand(**told | changes)


def simulated(asked: Demand, days: int, seed: int = 1) -> Day:
    """Second by second in effect: requests at random, a machine that starts, serves any number at once, and goes."""
    rng = random.Random(seed)
    rate = asked.requests / asked.busy_s
    up_s = waited = waited_all = starts = requests = 0.0
    free_at = ready_at = -1.0
    for day in range(days):
        now = day * DAY_S
        while (now := now + rng.expovariate(rate)) < day * DAY_S + asked.busy_s:
            requests += 1
            if now > free_at:
                starts += 1
                waited_all += 1
                waited += 1
                ready_at = now + asked.cold_start_s
                up_s -= now
            elif now < ready_at:
                waited += 1
                up_s -= free_at
            else:
                up_s -= free_at
            free_at = max(free_at, max(now, ready_at) + asked.service_s + asked.timeout_s)
            up_s += free_at
    return Day(
        requests=requests / days,
        up_s=up_s / days,
        cold_starts=starts / days,
        cold_share=waited / requests,
        first_share=waited_all / requests,
    )


DEMANDS = [
    demand(),
    demand(requests=100.0),
    demand(requests=3000.0, timeout_s=60.0),
    demand(requests=200.0, timeout_s=0.0, cold_start_s=240.0),
    demand(requests=100.0, busy_s=8 * 3600.0),
    demand(requests=20_000.0, busy_s=8 * 3600.0),
    demand(requests=30.0, busy_s=10 * 3600.0, timeout_s=900.0, cold_start_s=120.0),
    demand(requests=2000.0, cold_start_s=0.0, timeout_s=30.0),
]


@pytest.mark.parametrize("asked", DEMANDS)
def test_the_formulas_are_what_a_simulation_comes_to(asked: Demand) -> None:
    told, seen = scaled_to_zero(asked), simulated(asked, days=max(300, int(300_000 / asked.requests)))
    assert told.up_s == pytest.approx(seen.up_s, rel=0.03)
    assert told.cold_starts == pytest.approx(seen.cold_starts, rel=0.04, abs=0.02)
    assert told.cold_share == pytest.approx(seen.cold_share, rel=0.04, abs=1e-4)
    assert told.first_share == pytest.approx(seen.first_share, rel=0.04, abs=1e-4)


@given(st.floats(1, 1e6), st.floats(0, 3600), st.floats(0, 600), st.floats(1, 24))
def test_a_day_is_a_day(requests: float, timeout_s: float, cold_start_s: float, busy_h: float) -> None:
    asked = demand(requests=requests, timeout_s=timeout_s, cold_start_s=cold_start_s, busy_s=busy_h * 3600)
    day = scaled_to_zero(asked)
    assert 0 <= day.up_s <= DAY_S * (1 + 1e-9)
    assert 0 <= day.first_share <= day.cold_share <= 1


@given(st.floats(10, 1e5), st.floats(0, 600), st.floats(0, 600))
def test_patience_costs_time_and_saves_cold_starts(requests: float, timeout_s: float, more_s: float) -> None:
    short = scaled_to_zero(demand(requests=requests, timeout_s=timeout_s))
    long = scaled_to_zero(demand(requests=requests, timeout_s=timeout_s + more_s))
    assert long.up_s >= short.up_s * (1 - 1e-9)
    assert long.cold_starts <= short.cold_starts * (1 + 1e-9)


@given(st.lists(st.floats(0, 2000), max_size=60), st.floats(0, 100), st.floats(0, 600), st.floats(0, 300))
def test_given_gaps_are_gone_through_one_by_one(
    gaps_s: list[float], service_s: float, timeout_s: float, cold_s: float
) -> None:
    day = by_gaps(gaps_s, demand(service_s=service_s, timeout_s=timeout_s, cold_start_s=cold_s))
    assert day.requests == len(gaps_s) + 1
    stay_s = cold_s + service_s + timeout_s
    assert day.cold_starts >= 1 + sum(gap_s > stay_s for gap_s in gaps_s)
    assert day.up_s <= sum(gaps_s) + stay_s + 1e-6
    assert day.up_s >= stay_s - 1e-6


def test_gaps_that_are_random_come_to_the_formula() -> None:
    asked = demand(requests=400.0)
    rng = random.Random(3)
    times = [0.0]
    while times[-1] < 300 * DAY_S:
        times.append(times[-1] + rng.expovariate(asked.requests / DAY_S))
    found = by_gaps([later - sooner for sooner, later in pairwise(times)], asked)
    told = scaled_to_zero(asked)
    assert found.cold_share == pytest.approx(told.cold_share, rel=0.03)
    assert found.up_s / 300 == pytest.approx(told.up_s, rel=0.03)
