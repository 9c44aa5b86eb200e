"""Schedules are arithmetic: exact without jitter, seeded and true to the mean with it."""

import itertools
import re
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.errors import UsageError
from withstand.testing import Schedule
from withstand.testing.truth.schedule import offsets_ns

JITTERS = st.sampled_from(["none", "exp", "uniform:2", "lognormal:0.5"])


@given(st.floats(0, 5000), st.floats(0, 500), st.integers(0, 300))
def test_without_jitter_every_token_is_exactly_where_it_belongs(ttft_ms: float, itl_ms: float, count: int) -> None:
    offsets = list(offsets_ns(Schedule(ttft_ms, itl_ms), count, 0))
    assert len(offsets) == count
    assert all(abs(t - (ttft_ms + i * itl_ms) * 1e6) <= 1 for i, t in enumerate(offsets))


@given(JITTERS, JITTERS, st.integers(0, 2**40), st.integers(0, 10_000))
def test_jittered_times_never_go_back_and_come_again_with_their_seed(a: str, b: str, seed: int, number: int) -> None:
    schedule = Schedule(10, 5, jitter=a, ttft_jitter=b, seed=seed)
    offsets = list(offsets_ns(schedule, 50, number))
    assert offsets == list(offsets_ns(schedule, 50, number))
    assert all(x <= y for x, y in itertools.pairwise(offsets))
    assert offsets[0] >= 0


@pytest.mark.parametrize("jitter", ["exp", "uniform:5", "lognormal:0.5"])
def test_jitter_keeps_the_mean(jitter: str) -> None:
    offsets = list(offsets_ns(Schedule(0, 5, jitter=jitter, seed=7), 40_000, 0))
    gaps = [(y - x) / 1e6 for x, y in itertools.pairwise(offsets)]
    assert statistics.fmean(gaps) == pytest.approx(5, rel=0.02)
    assert statistics.stdev(gaps) > 1


def test_requests_of_one_seed_differ() -> None:
    schedule = Schedule(10, 5, jitter="exp", ttft_jitter="exp", seed=1)
    firsts = {next(offsets_ns(schedule, 1, number)) for number in range(100)}
    assert len(firsts) == 100


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"ttft_ms": -1}, "schedule.ttft_ms"),
        ({"itl_ms": float("nan")}, "schedule.itl_ms"),
        ({"tokens": 0}, "schedule.tokens"),
        ({"stop_after": 0}, "schedule.stop_after"),
        ({"jitter": "wild"}, "schedule.jitter"),
        ({"jitter": "exp:x"}, "schedule.jitter"),
        ({"itl_ms": 2, "jitter": "uniform:3"}, "schedule.jitter"),
        ({"ttft_ms": 2, "ttft_jitter": "uniform:3"}, "schedule.ttft_jitter"),
    ],
)
def test_what_cannot_be_played_is_refused_by_name(fields: dict[str, object], named: str) -> None:
    with pytest.raises(UsageError, match=re.escape(named)):
        Schedule(**fields)  # type: ignore[arg-type]
