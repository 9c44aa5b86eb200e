from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.metrics import rates
from withstand.metrics.flow import Flow
from withstand.metrics.latency import timing_of
from withstand.record import OUR_DOING, Record, Status
from withstand.spec import Slo

MS = 1_000_000
Answer = Callable[..., Record]


def flow_of(records: list[Record]) -> Flow:
    flow = Flow()
    for record in records:
        flow.add(record)
    return flow


def spans(pairs: list[tuple[int, int]]) -> Flow:
    return flow_of([Record(id=i, stage=0, status=Status.OK, sent_ns=a, end_ns=a + n) for i, (a, n) in enumerate(pairs)])


def test_one_after_another_is_never_two_at_once() -> None:
    assert rates.concurrency_peak(spans([(i * 10, 10) for i in range(10)])) == 1


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), min_size=1, max_size=30))
def test_the_sweep_counts_what_a_count_at_each_instant_does(pairs: list[tuple[int, int]]) -> None:
    at_once = [sum(a <= t < a + n for a, n in pairs) for t in range(80)]
    flow = spans(pairs)
    seconds = rates.duration_s(flow)
    mean = rates.concurrency_mean(flow)
    assert rates.concurrency_peak(flow) == max(at_once)
    assert seconds is not None
    assert mean is not None
    assert mean * seconds * 1e9 == pytest.approx(sum(n for _, n in pairs))


def test_a_request_that_was_never_sent_is_not_in_flight() -> None:
    flow = flow_of([Record(id=0, stage=0, status=Status.NOT_SENT, scheduled_ns=5)])
    assert rates.duration_s(flow) is None
    assert rates.concurrency_peak(flow) is None
    assert rates.concurrency_mean(flow) is None


def test_duration_counts_failures_too(answer: Answer) -> None:
    failed = Record(id=1, stage=0, status=Status.TIMEOUT, sent_ns=0, end_ns=2_000 * MS)
    assert rates.duration_s(flow_of([answer(), failed])) == 2.0


def test_rates_are_gaps_over_time(answer: Answer) -> None:
    flow = flow_of([answer(at_ms=100 * i) for i in range(11)])
    assert rates.rate_of(flow.sent) == pytest.approx(10.0)
    assert rates.rate_of(flow_of([answer()]).sent) is None


def test_tokens_peak_shares_the_tokens_over_the_events(answer: Answer) -> None:
    """5 events of 4 tokens each, 200 ms apart: 80 tokens in a second from four answers, where events would be 20."""
    four = [answer(tokens=5, itl_ms=200, ttft_ms=0, output_tokens=20) for _ in range(4)]
    assert rates.tokens_peak(flow_of(four)) == pytest.approx(80.0)


def test_tokens_peak_takes_the_servers_word_for_each_event(answer: Answer) -> None:
    told = answer(tokens=2, itl_ms=1000, ttft_ms=0, output_tokens=10, chunk_tokens=[9, 1])
    assert rates.tokens_peak(flow_of([told])) == 9.0


def test_tokens_without_a_stream_fall_on_the_end(answer: Answer) -> None:
    assert rates.tokens_peak(flow_of([answer(streamed=False, chunk_ns=[])])) == 20.0


def test_tokens_of_failures_do_not_count(answer: Answer) -> None:
    assert rates.tokens_peak(flow_of([answer(status=Status.TRUNCATED)])) is None


@pytest.mark.parametrize(
    ("slo", "good"),
    [
        (Slo(), True),
        (Slo(ttft=50), True),
        (Slo(ttft=49), False),
        (Slo(ttft=60, tpot=9.9), False),
        (Slo(tpot=10, e2el=240), True),
        (Slo(e2el=239), False),
    ],
)
def test_good_means_every_limit(slo: Slo, good: bool, answer: Answer) -> None:
    record = answer()
    assert rates.is_good(record, timing_of(record), slo) is good


def test_what_was_not_seen_was_not_kept_but_one_token_has_no_tpot(answer: Answer) -> None:
    one, whole = answer(tokens=1), answer(streamed=False)
    assert rates.is_good(one, timing_of(one), Slo(tpot=1))
    assert not rates.is_good(whole, timing_of(whole), Slo(tpot=1000))
    assert not rates.is_good(whole, timing_of(whole), Slo(ttft=1000))
    assert rates.is_good(whole, timing_of(whole), Slo(e2el=1000))


def test_a_server_that_is_gone_does_not_shorten_the_time_in_which_little_was_done() -> None:
    """Ten a second were asked for ten seconds; after five nobody answered: that is five a second, not ten."""
    good = [Record(id=i, stage=0, status=Status.OK, started_ns=t, sent_ns=t, end_ns=t + MS) for i, t in timed(0, 50)]
    refused = [Record(id=i, stage=0, status=Status.REFUSED, started_ns=t, end_ns=t + MS) for i, t in timed(50, 100)]
    for records in (good + refused, refused + good):
        assert rates.duration_s(flow_of(records)) == pytest.approx(9.901)
    assert rates.duration_s(flow_of(good)) == pytest.approx(4.901)
    assert rates.duration_s(flow_of(refused)) is None


@pytest.mark.parametrize("status", sorted(OUR_DOING))
def test_what_we_did_not_send_is_no_time_of_the_server_s(status: Status) -> None:
    good = Record(id=0, stage=0, status=Status.OK, started_ns=0, sent_ns=0, end_ns=MS)
    ours = Record(id=1, stage=0, status=status, started_ns=5 * MS, end_ns=9 * MS)
    assert rates.duration_s(flow_of([good, ours])) == pytest.approx(0.001)


def timed(first: int, last: int) -> list[tuple[int, int]]:
    """Ids, and the instant of each: ten a second."""
    return [(i, i * 100 * MS) for i in range(first, last)]
