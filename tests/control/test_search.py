"""Which load comes next, and what limit is read off those that were tried."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.control.hunt import ALONE, CROWD, SEARCH, Tried, found, next_stage
from withstand.control.limit import limit_of
from withstand.control.probe import Look, Probed, Standing
from withstand.control.repair import repaired
from withstand.control.search import Axis, Search
from withstand.control.share import Share
from withstand.spec import LimitSearch, Poisson, promise_of

PROMISE = promise_of("ttft:p95:400")


def one(load: float, standing: Standing, broken: float = 0.0, of: float = 200.0) -> Probed:
    promise = PROMISE if standing is Standing.BREAKS else None
    return Probed(load, Look(standing=standing, promise=promise, shares=(Share(broken, of),), requests=int(of)))


def sure(load: float, limit: float) -> Probed:
    """Of a server whose limit is sharp."""
    return one(load, Standing.HOLDS) if load <= limit else one(load, Standing.BREAKS, 150.0)


def searched(limit: float, search: Search) -> list[Probed]:
    tried: list[Probed] = []
    while (load := search.next(repaired(tried, search.promises))) is not None:
        tried.append(sure(load, limit))
        assert len(tried) < 60
    return tried


@given(st.floats(0.02, 5000), st.floats(0.02, 5000), st.sampled_from([0.02, 0.05, 0.2]))
def test_whatever_the_limit_and_the_start_it_ends_in_a_bracket_as_narrow_as_asked(
    limit: float, start: float, precision: float
) -> None:
    tried = searched(limit, Search(promises=(PROMISE,), start=start, precision=precision, least=0.001))
    interval = limit_of(tried, Axis.RATE, (PROMISE,)).interval
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low <= limit < interval.high
    assert interval.high <= interval.low * (1 + precision) * 1.011  # three digits are as fine as loads are told


@given(st.integers(1, 400), st.integers(1, 64))
def test_of_users_the_last_whole_number_is_found(limit: int, start: int) -> None:
    search = Search(axis=Axis.CONCURRENCY, promises=(PROMISE,), start=start, precision=0.01, least=1)
    interval = limit_of(searched(limit, search), Axis.CONCURRENCY, (PROMISE,)).interval
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low <= limit < interval.high
    assert interval.high - interval.low <= max(1, 0.01 * interval.low)


def test_a_server_that_keeps_its_promise_at_no_load_is_not_halved_for_ever() -> None:
    search = Search(promises=(PROMISE,), start=8.0, least=0.5)
    tried = searched(0.0, search)
    assert [p.load for p in tried] == [8.0, 4.0, 2.0, 1.0, 0.5]
    assert limit_of(tried, Axis.RATE, (PROMISE,)).interval.low is None


def test_a_load_that_stays_open_is_gone_on_from_on_both_sides() -> None:
    search = Search(promises=(PROMISE,), start=4.0)
    tried = [one(4.0, Standing.HOLDS), one(8.0, Standing.BREAKS, 100), one(5.66, Standing.OPEN, 10)]
    low = search.next(tried)
    assert low is not None
    assert 4.0 < low < 5.66
    near = [*tried, one(5.5, Standing.HOLDS)]
    high = search.next(near)
    assert high is not None
    assert 5.66 < high < 8.0


@pytest.mark.parametrize(("broken", "nears"), [(2.0, True), (40.0, False)])
def test_below_an_open_load_the_next_is_near_if_it_seemed_kept(broken: float, nears: bool) -> None:
    search = Search(promises=(PROMISE,), start=4.0)
    load = search.next([one(4.0, Standing.OPEN, broken), one(8.0, Standing.BREAKS, 100)])
    assert load == (3.2 if nears else 2.0)


def test_no_lower_load_is_tried_where_too_few_requests_came_to_tell_anything() -> None:
    search = Search(promises=(PROMISE,), start=4.0)
    load = search.next([one(4.0, Standing.OPEN, 0.0, 20.0), one(8.0, Standing.BREAKS, 100)])
    assert load == 5.66


def test_a_probe_that_its_neighbours_contradict_is_open_again() -> None:
    """It broke by bad luck after few requests, and a higher load held with many."""
    tried = [one(7.0, Standing.BREAKS, 6, 20), one(7.3, Standing.OPEN, 6, 400), one(9.0, Standing.BREAKS, 100)]
    mended = repaired(tried, (PROMISE,))
    assert [p.look.standing for p in mended] == [Standing.OPEN, Standing.OPEN, Standing.BREAKS]
    assert repaired(tried[:1], (PROMISE,)) == tried[:1]


def test_the_guess_lies_where_the_course_of_what_broke_reaches_what_may() -> None:
    tried = [one(8.0, Standing.HOLDS, 2, 200), one(9.0, Standing.OPEN, 10, 200), one(10.0, Standing.BREAKS, 25, 200)]
    limit = limit_of(tried, Axis.RATE, (PROMISE,))
    assert limit.load == pytest.approx(9.0, rel=0.03)
    assert limit.first_broken == PROMISE


# The stages of a hunt.

WANTED = LimitSearch(promises=(PROMISE,))


def _hunted(limit: float, capacity: float, wanted: LimitSearch = WANTED) -> list[Tried]:
    """On a server with so much throughput, whose promise breaks above ``limit``."""
    tried: list[Tried] = []
    while (stage := next_stage(wanted, tried)) is not None:
        users = stage.max_concurrency or 0
        if stage.phase == SEARCH:
            load = stage.arrivals.rate if isinstance(stage.arrivals, Poisson) else float(users)
            tried.append(Tried(stage, sure(load, limit).look))
        else:
            look = sure(0.1, limit).look if stage.phase == ALONE else None
            tried.append(Tried(stage, look, min(2.0 * users, capacity), 0.5))
        assert len(tried) < 40
    return tried


def test_a_hunt_begins_alone_then_with_crowds_until_they_get_no_more() -> None:
    tried = _hunted(limit=40.0, capacity=70.0)
    assert [t.stage.name for t in tried if t.stage.phase != SEARCH] == ["alone", "crowd-8", "crowd-32", "crowd-128"]
    first = next(t.stage for t in tried if t.stage.phase == SEARCH)
    assert first.arrivals == Poisson(42.0)
    assert len({t.stage.name for t in tried}) == len(tried)
    limit = found(WANTED, tried)
    assert limit.load is not None
    assert limit.load == pytest.approx(40.0, rel=0.05)


def test_who_says_where_to_begin_spares_the_crowds() -> None:
    tried = _hunted(40.0, 70.0, LimitSearch(promises=(PROMISE,), start=10.0))
    assert not [t for t in tried if t.stage.phase == CROWD]


def test_of_users_no_crowd_is_needed_either() -> None:
    wanted = LimitSearch(promises=(PROMISE,), axis="concurrency")
    limit = found(wanted, _hunted(12, 70.0, wanted))
    assert (limit.interval.low, limit.interval.high) == (12, 13)


def test_where_one_user_does_not_get_it_nothing_is_searched() -> None:
    tried = _hunted(limit=0.01, capacity=70.0)
    assert [t.stage.phase for t in tried] == [ALONE]
    limit = found(WANTED, tried)
    assert limit.alone is not None
    assert limit.load is None
