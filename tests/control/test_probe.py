"""Whether a load keeps its promises: on queues in virtual time whose truth is known."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from withstand.control.kept import broken
from withstand.control.probe import Look, Probe, Standing
from withstand.control.share import Share
from withstand.record import Record, Status
from withstand.spec import Promise, promise_of
from withstand.testing import queues
from withstand.testing.queues import Queue, drifting, fixed

SERVER = Queue(1, fixed(0.1, 0.001))
"""M/D/1; the p95 of TTFT is 400 ms at 6.1 requests a second."""
PROMISE = promise_of("ttft:p95:400")


def probed(rate_rps: float, seed: int, promise: Promise = PROMISE) -> tuple[Look, float]:
    return queues.probed(SERVER, promise, rate_rps, seed, until_s=300.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_load_well_below_its_limit_holds_and_one_above_breaks(seed: int) -> None:
    assert probed(4.0, seed)[0].standing is Standing.HOLDS
    look, after_s = probed(9.5, seed)
    assert look.standing is Standing.BREAKS
    assert look.promise == PROMISE
    assert after_s < 60


def test_at_the_limit_itself_hardly_any_probe_is_sure() -> None:
    standings = [probed(6.1, seed)[0].standing for seed in range(12)]
    assert standings.count(Standing.OPEN) >= 11


@pytest.mark.parametrize("seed", range(3))
def test_where_only_success_is_promised_a_queue_without_end_is_known_by_its_growth(seed: int) -> None:
    promise = promise_of("success:99%")
    look, after_s = probed(15.0, seed, promise)
    assert look.standing is Standing.GROWS
    assert after_s < 60
    assert probed(8.0, seed, promise)[0].standing is not Standing.GROWS


def test_a_short_quiet_start_proves_nothing() -> None:
    """No one waits at first, however high the load: a probe that believed it would hold what breaks."""
    nobody_waits = Queue(64, fixed(0.1, 0.001))
    for seed in range(10):
        probe = Probe((PROMISE,))
        probe.feed(nobody_waits.answers(6.8, seed, 100))
        look = probe.look()
        assert look is not None
        assert look.standing is Standing.OPEN


def test_a_slow_drift_far_below_the_limit_does_not_make_many_requests_count_as_one() -> None:
    """The machine gets slower by a tenth and faster again, in minutes; 110 ms are as good as 90 of 400."""
    server = Queue(8, drifting(fixed(0.1, 0.001), lambda at_s: 1 + 0.1 * math.sin(at_s / 30)))
    look, after_s = queues.probed(server, PROMISE, 2.0, 1, until_s=300.0)
    assert look.standing is Standing.HOLDS
    assert after_s < 120
    near = queues.probed(server, promise_of("ttft:p95:112"), 2.0, 1, until_s=300.0)[0]
    assert near.standing is Standing.OPEN


def test_what_is_slow_is_not_left_out_because_it_is_not_over() -> None:
    """The first is missing: nothing is counted before it, lest only the quick ones count."""
    probe = Probe((PROMISE,))
    records = SERVER.answers(4.0, 1, 500)
    probe.feed(records[1:])
    assert probe.look() is None
    probe.feed(records[:1])
    look = probe.look()
    assert look is not None
    assert look.requests == 500


RECORD = SERVER.answers(1.0, 0, 1)[0]


@pytest.mark.parametrize(
    ("status", "promise", "counted"),
    [
        (Status.HTTP_ERROR, "ttft:p95:400", (1, 1)),
        (Status.TIMEOUT, "success:99%", (1, 1)),
        (Status.OK, "success:99%", (0, 1)),
        (Status.NOT_SENT, "success:99%", (0, 0)),
        (Status.LOST, "ttft:p95:400", (0, 0)),
        (Status.OK, "ttft:p95:99", (1, 1)),
        (Status.OK, "e2el:p95:102", (0, 1)),
        (Status.OK, "itl:p95:0.5", (1, 1)),
    ],
)
def test_a_failure_breaks_every_promise_and_our_own_fault_none(
    status: Status, promise: str, counted: tuple[int, int]
) -> None:
    assert broken(replace(RECORD, status=status), promise_of(promise)) == counted


def _cut(after_ms: float, *, tokens: bool) -> Record:
    assert RECORD.sent_ns is not None
    end_ns = RECORD.sent_ns + round(after_ms * 1e6)
    chunk_ns = [RECORD.sent_ns + 1] if tokens else []
    return replace(RECORD, status=Status.CANCELLED, chunk_ns=chunk_ns, end_ns=end_ns)


def test_one_that_we_cut_broke_its_promise_only_if_it_was_late_already() -> None:
    assert broken(_cut(500, tokens=False), PROMISE) == (1, 1)
    assert broken(_cut(300, tokens=False), PROMISE) == (0, 0)
    assert broken(_cut(500, tokens=True), PROMISE) == (0, 0)
    assert broken(_cut(500, tokens=True), promise_of("e2el:p95:400")) == (1, 1)


@given(st.integers(0, 300), st.integers(1, 300), st.floats(0.01, 0.99))
def test_the_chances_of_so_few_and_of_so_many_leave_only_that_number_out_and_in(k: int, n: int, q: float) -> None:
    """P(X <= k) + P(X >= k + 1) = 1 of a binomial X."""
    k = min(k, n - 1)
    assert Share(k, n).below(q) + Share(k + 1, n).above(q) == pytest.approx(1, abs=1e-6)


def test_none_broken_of_many_is_as_rare_as_it_should_be() -> None:
    assert Share(0, 59).below(0.05) == pytest.approx(0.95**59)
    assert Share(3, 3).above(0.05) == pytest.approx(0.05**3)


@given(st.integers(0, 50), st.integers(1, 300))
def test_a_share_lies_in_its_interval_at_whose_ends_it_is_seen_once_in_forty(k: int, n: int) -> None:
    share = Share(min(k, n), n)
    low, high = share.interval.low, share.interval.high
    assert low is not None
    assert high is not None
    assert low <= share.value <= high
    if 0 < share.broken < n:
        assert share.above(low) == pytest.approx(0.025, abs=1e-6)
        assert share.below(high) == pytest.approx(0.025, abs=1e-6)


def test_a_cut_response_time_counts_from_the_schedule() -> None:
    cut = replace(_cut(300, tokens=False), scheduled_ns=(RECORD.sent_ns or 0) - 200_000_000)
    assert broken(cut, promise_of("response:p95:400")) == (1, 1)
    assert broken(cut, promise_of("e2el:p95:400")) == (0, 0)


def test_a_limiter_that_breaks_a_promise_is_told_from_an_engine() -> None:
    answers = SERVER.answers(2.0, 1, 100)
    for status, by_limiter in ((Status.LIMITED, True), (Status.HTTP_ERROR, False)):
        probe = Probe((promise_of("success:95%"),))
        probe.feed(replace(r, status=status) if r.id % 4 == 0 else r for r in answers)
        look = probe.last_look()
        assert look.standing is Standing.BREAKS
        assert look.by_limiter is by_limiter
