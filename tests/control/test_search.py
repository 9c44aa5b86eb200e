"""Which load comes next, and what limit is read off those that were tried."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.control.hunt import found, next_stage
from withstand.control.limit import limit_of
from withstand.control.probe import Look, Probed, Standing
from withstand.control.repair import repaired
from withstand.control.search import Axis, Search
from withstand.control.share import Share
from withstand.control.tried import ALONE, CHECK, CROWD, SEARCH, Tried
from withstand.spec import LimitSearch, Poisson, Stage, promise_of

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


def test_what_broke_before_anything_had_held_is_tried_again_for_the_server_may_have_been_cold() -> None:
    tried: list[Probed] = []
    search = Search(promises=(PROMISE,), start=8.0)
    while (load := search.next(repaired(tried, search.promises))) is not None:
        tried.append(sure(load, 1.0 if len(tried) < 3 else 40.0))
        assert len(tried) < 40
    assert [p.load for p in tried[:6]] == [8.0, 4.0, 2.0, 1.0, 2.0, 4.0]
    interval = limit_of(tried, Axis.RATE, (PROMISE,)).interval
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low <= 40 < interval.high


def test_an_end_that_hangs_by_a_single_clump_of_requests_is_tried_again() -> None:
    search = Search(promises=(PROMISE,), start=4.0)
    tried = [one(4.0, Standing.HOLDS), one(4.15, Standing.BREAKS, 3, 4)]
    assert search.next(tried) == 4.15
    assert search.next([*tried, one(4.15, Standing.BREAKS, 3, 4)]) is None
    assert search.next([one(4.0, Standing.HOLDS), one(4.15, Standing.BREAKS, 9, 40)]) is None


def doubted(load: float) -> Probed:
    look = Look(standing=Standing.OPEN, shares=(Share(40, 200),), requests=200, doubt="our own client was too slow")
    return Probed(load, look)


def test_nothing_is_tried_above_a_load_at_which_our_own_client_is_in_the_way() -> None:
    search = Search(promises=(PROMISE,), start=4.0)
    tried: list[Probed] = []
    while (load := search.next(repaired(tried, search.promises))) is not None:
        tried.append(one(load, Standing.HOLDS) if load < 30 else doubted(load))
        assert len(tried) < 20
    assert max(p.load for p in tried) == 32.0
    limit = limit_of(tried, Axis.RATE, (PROMISE,))
    assert limit.interval.high is None
    assert limit.interval.low is not None
    assert limit.interval.low > 24
    assert limit.doubted == doubted(32.0)


def test_a_doubt_beside_a_narrow_interval_does_not_matter() -> None:
    tried = [one(4.0, Standing.HOLDS), doubted(4.1), one(4.15, Standing.BREAKS, 9, 40)]
    assert limit_of(tried, Axis.RATE, (PROMISE,)).doubted is None
    wide = [one(4.0, Standing.HOLDS), doubted(4.1), one(8.0, Standing.BREAKS, 9, 40)]
    assert limit_of(wide, Axis.RATE, (PROMISE,)).doubted == doubted(4.1)


def _broken(failed: int, answered: int) -> list[Tried]:
    alone = Tried(Stage(name=ALONE, phase=ALONE, max_concurrency=1), one(0, Standing.HOLDS).look, 2.0, 0.5)
    stage = Stage(name="rate-8", phase=SEARCH, arrivals=Poisson(8.0))
    return [alone, Tried(stage, one(8.0, Standing.BREAKS, 9, 40).look, failed=failed, answered=answered)]


def test_where_much_failed_it_is_asked_whether_the_server_is_still_there() -> None:
    wanted = LimitSearch(promises=(PROMISE,), start=8.0)
    assert next_stage(wanted, _broken(0, 40)).phase == SEARCH  # type: ignore[union-attr]
    check = next_stage(wanted, _broken(9, 31))
    assert check is not None
    assert check.phase == CHECK
    answered = next_stage(wanted, [*_broken(9, 31), Tried(check, answered=3)])
    assert answered is not None
    assert answered.arrivals == Poisson(4.0)
    assert next_stage(wanted, [*_broken(9, 31), Tried(check, answered=0, failed=3)]) is None


def test_few_requests_are_waited_for_longer_unless_a_time_was_said() -> None:
    for rate_rps, probe_s, least_s in ((8.0, None, 120.0), (0.1, None, 1700.0), (0.1, 60.0, 60.0)):
        wanted = LimitSearch(promises=(PROMISE,), start=rate_rps, probe_s=probe_s)
        stage = next_stage(wanted, _broken(0, 40)[:1])
        assert stage is not None
        assert stage.duration_s is not None
        assert least_s <= stage.duration_s <= 1.1 * least_s


def test_no_load_is_held_longer_than_a_stage_can_last() -> None:
    """Where a single request in a hundred million may fail, nobody waits until that is known."""
    for promise, start in ((promise_of("success:99.999999%"), 20.0), (promise_of("ttft:p95:500"), 1e-6)):
        wanted = LimitSearch(promises=(promise,), start=start)
        stage = next_stage(wanted, [Tried(Stage(phase=ALONE, max_concurrency=1), request_throughput=1.0, e2el_s=1.0)])
        assert stage is not None
        assert msgspec.convert(msgspec.to_builtins(stage), Stage) == stage
