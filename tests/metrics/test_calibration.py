"""What a step says of the client, and how many workers carry a load."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrating import make_calibration, make_step
from withstand.metrics.calibration import Capacity, Verdict, best
from withstand.record import Clock

MS = 1_000_000


@pytest.mark.parametrize(
    ("facts", "verdict", "limit"),
    [
        ({}, Verdict.GOOD, ""),
        ({"cpu_share": 0.9}, Verdict.CLIENT, "CPU"),
        ({"failed": 1}, Verdict.CLIENT, "requests failed"),
        ({"cpu_share": 0.7, "late_p99_ns": 6 * MS}, Verdict.CLIENT, "late sends"),
        ({"cpu_share": 0.7, "lag_p99_ns": 6 * MS}, Verdict.CLIENT, "lag"),
        ({"cpu_share": 0.7, "unseen_share": 0.06}, Verdict.CLIENT, "gaps not seen"),
        ({"cpu_share": 0.7, "itl_error_p99_ns": MS}, Verdict.CLIENT, "ITL error"),
        ({"cpu_share": 0.7, "ttft_error_p99_ns": MS}, Verdict.CLIENT, "TTFT error"),
        ({"cpu_share": 0.1, "itl_error_p99_ns": MS}, Verdict.DISTURBED, "ITL error"),
        ({"server_share": 0.95}, Verdict.SERVER, "CPU"),
        ({"server_share": 0.95, "cpu_share": 0.95}, Verdict.CLIENT, "CPU"),
        ({"server_late_p99_ns": 6 * MS}, Verdict.DISTURBED, "server late"),
        ({"server_late_p99_ns": 6 * MS, "cpu_share": 0.7, "lag_p99_ns": 6 * MS}, Verdict.DISTURBED, "server late"),
    ],
)
def test_a_step_is_the_clients_limit_only_where_the_client_is_to_blame(
    facts: dict[str, Any], verdict: Verdict, limit: str
) -> None:
    step = make_step(8_000, **facts)
    assert (step.verdict, step.limit) == (verdict, limit)


def test_a_user_space_clock_is_allowed_more_error_than_the_kernels() -> None:
    error = {"cpu_share": 0.7, "itl_error_p99_ns": MS // 2}
    assert make_step(8_000, **error).verdict is Verdict.CLIENT
    assert make_step(8_000, clock=Clock.USER, **error).verdict is Verdict.GOOD


def test_what_could_not_be_told_breaks_no_limit() -> None:
    unknown = dict.fromkeys(("lag_p99_ns", "itl_error_p99_ns", "ttft_error_p99_ns", "late_p99_ns"))
    assert make_step(8_000, cpu_share=0.8, **unknown).verdict is Verdict.GOOD


def test_the_capacity_is_that_of_the_best_good_steps() -> None:
    capacity = make_calibration().capacity
    assert capacity == Capacity(tokens_per_s=40_000, streams=400, tokens=64, requests_per_s=10_000)


def test_a_calibration_is_whole_when_the_clients_own_limits_stand_closely_above() -> None:
    short = (make_step(10_000, streamed=False), make_step(12_000, streamed=False, cpu_share=1.0))
    good, client, server = make_step(8_000), make_step(10_000, cpu_share=1.0), make_step(9_000, server_share=1.0)
    disturbed, far = make_step(9_000, itl_error_p99_ns=MS), make_step(16_000, cpu_share=1.0)
    assert make_calibration(good, client, *short).whole
    assert make_calibration(good, disturbed, client, *short).whole
    assert not make_calibration(good, far, *short).whole
    assert not make_calibration(good, server, client, *short).whole
    assert not make_calibration(good, disturbed, *short).whole
    assert not make_calibration(good, *short).whole
    assert not make_calibration(client, *short).whole
    assert best(make_calibration(client, *short).steps, streamed=True) is None


CAPACITY = Capacity(tokens_per_s=40_000, streams=400, tokens=64, requests_per_s=10_000)
LOADS = {
    "rate_rps": st.floats(0, 20_000),
    "tokens_per_s": st.floats(0, 1e6),
    "streams": st.integers(0, 10_000),
}


def test_the_load_that_was_measured_is_one_workers() -> None:
    assert CAPACITY.load_of(rate_rps=40_000 / 64, tokens_per_s=40_000, streams=400) == pytest.approx(1)
    assert CAPACITY.load_of(rate_rps=10_000, tokens_per_s=0, streams=0) == pytest.approx(1)


@given(**LOADS)
def test_twice_the_load_needs_at_most_twice_the_workers(rate_rps: float, tokens_per_s: float, streams: int) -> None:
    once = CAPACITY.workers_for(rate_rps=rate_rps, tokens_per_s=tokens_per_s, streams=streams)
    twice = CAPACITY.workers_for(rate_rps=2 * rate_rps, tokens_per_s=2 * tokens_per_s, streams=2 * streams)
    assert 1 <= once <= twice <= 2 * once


@given(st.floats(1, 1e6), st.integers(1, 2000))
def test_long_answers_are_cheaper_than_short_ones_at_the_same_token_rate(tokens_per_s: float, tokens: int) -> None:
    short = CAPACITY.load_of(rate_rps=tokens_per_s / tokens, tokens_per_s=tokens_per_s, streams=0)
    long = CAPACITY.load_of(rate_rps=tokens_per_s / (2 * tokens), tokens_per_s=tokens_per_s, streams=0)
    assert long < short
