"""What a run means for a bill: at which load, against what, and over a day."""

from typing import Any

import pytest

from billed import stage
from withstand.metrics.cost import priced
from withstand.metrics.economy import economy_of, largest_seen
from withstand.metrics.summary import Economy, Interval, StageSummary, Sustained
from withstand.spec import Price, TokenPrice, Usage

TOKENS = TokenPrice(input=3.0, output=6.0)


def billed(*stages: StageSummary, **price: Any) -> tuple[list[StageSummary], Price]:
    told = Price(**{"per_hour": 3.6, "against": TOKENS} | price)
    return [priced(one, told, 0.99) for one in stages], told


def economy(*stages: StageSummary, ready_s: float | None = None, **price: Any) -> Economy:
    shown, told = billed(*stages, **price)
    found = economy_of(shown, told, largest_seen(shown), ready_s)
    assert found is not None
    return found


def test_the_largest_load_is_the_busiest_stage_that_keeps_its_limits() -> None:
    kept, _ = billed(stage("low", 1, 1.0), stage("high", 4, 0.995), stage("over", 8, 0.5))
    assert largest_seen(kept) == Sustained(rps=4, stage="high", within_limits=True)
    free, _ = billed(stage("low", 1), stage("high", 4))
    assert largest_seen(free) == Sustained(rps=4, stage="high", within_limits=None)
    none, _ = billed(stage("over", 8, 0.5))
    assert largest_seen(none) is None, "nothing can be promised, so nothing is sold"


def test_how_sure_a_rate_is_comes_back_from_the_price_of_a_request() -> None:
    told = Price(per_hour=3.6, against=TOKENS)
    one = priced(stage("s", 4), told, 0.99, {"request_throughput": Interval(3.5, 4.5)})
    seen = largest_seen([one])
    assert seen is not None
    assert seen.interval == Interval(pytest.approx(3.5), pytest.approx(4.5))


def test_break_even_is_at_the_largest_load() -> None:
    found = economy(stage("low", 1), stage("high", 4)).break_even
    assert found is not None
    assert found.times_cheaper == pytest.approx(2.4)
    assert found.utilisation == pytest.approx(1 / 2.4)


def test_a_limit_between_stages_has_the_mix_of_the_nearest() -> None:
    shown, told = billed(stage("low", 1), stage("high", 4, total_output_tokens=100 * 400))
    at = Sustained(rps=3.0, interval=Interval(2.9, 3.1), stage=None, within_limits=True)
    found = economy_of(shown, told, at)
    assert found is not None
    assert found.break_even is not None
    assert found.break_even.elsewhere_per_request == pytest.approx(0.0009)
    assert found.break_even.times_interval == Interval(pytest.approx(2.61), pytest.approx(2.79))


def test_a_day_is_weighed_by_the_calmest_answers() -> None:
    usage = Usage(requests_per_day=400, idle_timeout_s=300, cold_start_s=60)
    calm, busy = stage("low", 1), stage("high", 4)
    found = economy(calm, busy, usage=usage)
    assert found.day is not None
    assert found.always_on_per_day == pytest.approx(86.4)
    assert found.idle_per_day == pytest.approx(3.6 * (24 - 100 / 3600))
    assert found.scaled_per_day == pytest.approx(3.6 * found.day.up_s / 3600)
    assert 0 < found.day.cold_share < 1
    assert economy(busy, usage=usage).day == found.day, "both take 2 s an answer"


def test_without_a_number_of_requests_a_day_is_full() -> None:
    found = economy(stage("s", 4), usage=Usage(busy_hours=10, cold_start_s=60))
    assert found.day is not None
    assert found.day.requests == pytest.approx(4 * 36_000)
    assert found.day.cold_starts == pytest.approx(1, abs=0.01)
    assert found.idle_per_day == pytest.approx(3.6 * 14)


def test_a_cold_start_is_told_or_was_seen_or_nothing_is_known() -> None:
    one, usage = stage("s", 4), Usage(requests_per_day=400)
    assert economy(one, usage=usage).day is None
    assert economy(one, usage=usage, ready_s=12.0).cold_start_s == 12.0
    told = Usage(requests_per_day=400, cold_start_s=30)
    assert economy(one, usage=told, ready_s=12.0).cold_start_s == 30


def test_given_gaps_take_the_place_of_random_ones() -> None:
    found = economy(stage("s", 4), usage=Usage(gaps_s=(10.0, 10_000.0, 10.0), cold_start_s=30))
    assert found.day is not None
    assert (found.day.requests, found.day.cold_starts) == (4, 2)


def test_without_a_price_there_is_no_bill() -> None:
    assert economy_of([stage()], Price(against=TOKENS), largest_seen([stage()])) is None
