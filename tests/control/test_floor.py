"""From which load on tokens are as cheap as was promised."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.control.floor import floor_of
from withstand.control.hunt import found, next_stage
from withstand.control.probe import Look, Standing
from withstand.control.share import Share
from withstand.control.tried import ALONE, SEARCH, Tried
from withstand.metrics.cost import per_million
from withstand.spec import LimitSearch, Poisson, Stage, promise_of

PROMISES = (promise_of("ttft:p95:400"),)
BY_RATE = LimitSearch(promises=PROMISES, cost=0.8, price_per_hour=2.0)
BY_USERS = LimitSearch(promises=PROMISES, axis="concurrency", cost=0.8, price_per_hour=2.0, precision=0.01)
ENOUGH_TPS = 2.0 / 0.8 * 1e6 / 3600


def rate(load: float, tokens: int, asked: int = 100, standing: Standing = Standing.HOLDS) -> Tried:
    stage = Stage(name=f"rate-{load:g}", phase=SEARCH, arrivals=Poisson(load))
    look = Look(standing=standing, shares=(Share(0.0, 200.0),), requests=asked)
    return Tried(stage, look, asked=asked, answered=asked, output_tokens=tokens)


@given(st.floats(0.01, 1000), st.floats(0.01, 100), st.integers(100, 1_000_000))
def test_at_its_rate_a_million_tokens_cost_what_was_promised(price: float, cost: float, tokens: int) -> None:
    wanted = LimitSearch(promises=PROMISES, cost=cost, price_per_hour=price)
    floor = floor_of(wanted, [rate(3.0, tokens)])
    assert floor is not None
    assert floor.load is not None
    assert per_million(price, floor.load * tokens / 100) == pytest.approx(cost)


def test_answers_of_other_lengths_make_an_interval() -> None:
    floor = floor_of(BY_RATE, [rate(3.0, 6400), rate(4.0, 6500), rate(5.0, 6300)])
    assert floor is not None
    assert floor.interval.low is not None
    assert floor.interval.high is not None
    assert floor.interval.low < ENOUGH_TPS / 64 < floor.interval.high


def test_loads_whose_answers_were_cut_do_not_count() -> None:
    cut = rate(9.0, 10, standing=Standing.BREAKS)
    assert floor_of(BY_RATE, [rate(3.0, 6400), cut]) == floor_of(BY_RATE, [rate(3.0, 6400)])
    assert floor_of(BY_RATE, [cut]) == floor_of(BY_RATE, [])


def test_without_a_price_there_is_none() -> None:
    assert floor_of(LimitSearch(promises=PROMISES), [rate(3.0, 6400)]) is None


def of_users(limit: int, tps: float) -> list[Tried]:
    """All stages of a search on a server whose users get ``tps`` each."""
    tried: list[Tried] = []
    while (stage := next_stage(BY_USERS, tried)) is not None:
        users = stage.max_concurrency or 0
        kept = users <= limit
        shares = (Share(0.0 if kept else 150.0, 200.0),)
        standing, promise = (Standing.HOLDS, None) if kept else (Standing.BREAKS, PROMISES[0])
        look = Look(standing=standing, promise=promise, shares=shares)
        look = look if stage.phase != ALONE else Look(standing=Standing.HOLDS)
        tried.append(Tried(stage, look, 1.0, 0.5, output_throughput=tps * users))
        assert len(tried) < 40
    return tried


@given(st.integers(1, 200), st.floats(5, 500))
def test_of_users_the_fewest_that_are_enough_are_found(limit: int, tps: float) -> None:
    result = found(BY_USERS, of_users(limit, tps))
    fewest = next(n for n in range(1, 1000) if n * tps >= ENOUGH_TPS)
    assert result.floor is not None
    if fewest <= limit:
        assert result.floor.load == fewest
        assert result.is_worth_it
    elif fewest > limit + 1:
        assert not result.is_worth_it


@pytest.mark.parametrize(("tokens", "is_worth_it"), [(100_000, True), (100, False)])
def test_whether_a_load_keeps_both(tokens: int, is_worth_it: bool) -> None:
    broken = Look(standing=Standing.BREAKS, promise=PROMISES[0], shares=(Share(150.0, 200.0),), requests=100)
    top = Tried(Stage(name="rate-4.1", phase=SEARCH, arrivals=Poisson(4.1)), broken)
    assert found(BY_RATE, [rate(4.0, tokens), top]).is_worth_it is is_worth_it
