"""Cold answers against warm ones, over all cycles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.metrics.cold import Met, cold_start
from withstand.metrics.fold import fold_of
from withstand.metrics.sample import Sample
from withstand.metrics.summary import Interval
from withstand.record import Record, Status
from withstand.spec import Slo

MS = 1_000_000


def met(*ttft_ms: float, cold: bool, ready_s: float | None = None) -> Met:
    sample = Sample()
    sample.extend(int(ms * MS) for ms in ttft_ms)
    return Met(cold=cold, ttft=sample, started=0, started_ms=0.0, ready_s=ready_s)


def answer(ttft_ms: float, server_timing: str | None = None) -> Record:
    first_ns = int(ttft_ms * MS)
    return Record(
        id=0,
        stage=0,
        status=Status.OK,
        sent_ns=0,
        chunk_ns=[first_ns, first_ns + MS],
        end_ns=first_ns + MS,
        server_timing=server_timing,
    )


def test_all_cycles_are_one_distribution_a_side() -> None:
    stages = [met(900, cold=True), met(50, 60, cold=False), met(1100, cold=True), met(40, 50, cold=False)]
    found = cold_start("pause", stages)
    assert found is not None
    assert (found.cold.n, found.cold.mean, found.warm.n, found.warm.mean) == (2, 1000, 4, 50)
    assert (found.extra, found.extra_interval, found.start_mean) == (950, None, None)


def test_nothing_is_said_where_no_cold_answer_was_good() -> None:
    assert cold_start("pause", [met(cold=True), met(50, cold=False)]) is None
    assert cold_start("pause", []) is None


def test_the_start_of_a_server_that_was_started_anew_is_in_its_cold_answers() -> None:
    found = cold_start("restart", [met(100, cold=True, ready_s=2.5), met(50, cold=False, ready_s=None)])
    assert found is not None
    assert (found.cold.mean, found.start_mean, found.extra) == (2600, 2500, 2550)


def test_what_the_gateway_tells_of_a_start_is_counted_on_both_sides() -> None:
    cold = fold_of([answer(900, "queue;dur=820, cold;dur=800, hop;dur=1"), answer(100, "hop;dur=1")], Slo())
    warm = fold_of([answer(50, "hop;dur=1"), answer(60)], Slo())
    stages = [Met.of(cold, cold=True, ready_s=None), Met.of(warm, cold=False, ready_s=None)]
    found = cold_start("gateway", stages)
    assert found is not None
    assert (found.cold_started, found.warm_started, found.start_mean) == (1, 0, 800)


def test_the_difference_of_means_has_welchs_interval() -> None:
    cold, warm = (10.0, 12.0, 15.0, 11.0, 14.0, 16.0), (1.0, 2.0, 1.5, 1.2, 1.8, 1.1, 1.9, 1.4)
    found = cold_start("pause", [met(*cold, cold=True), met(*warm, cold=False)])
    assert found is not None
    assert found.extra is not None
    assert found.extra_interval is not None
    assert found.extra == pytest.approx(11.5125)
    # scipy.stats.ttest_ind(cold, warm, equal_var=False).confidence_interval(0.95), of 5.19 degrees of freedom
    assert found.extra_interval.low == pytest.approx(9.03307, rel=1e-3)
    assert found.extra_interval.high == pytest.approx(13.99193, rel=1e-3)


@given(
    st.lists(st.integers(1, 10**6), min_size=5, max_size=30), st.lists(st.integers(1, 10**6), min_size=5, max_size=30)
)
def test_sides_that_change_places_turn_the_interval_about(a: list[int], b: list[int]) -> None:
    one = cold_start("pause", [met(*a, cold=True), met(*b, cold=False)])
    other = cold_start("pause", [met(*b, cold=True), met(*a, cold=False)])
    assert one is not None
    assert other is not None
    assert isinstance(one.extra_interval, Interval)
    assert isinstance(other.extra_interval, Interval)
    assert one.extra_interval.low == pytest.approx(-(other.extra_interval.high or 0), abs=1e-3)
