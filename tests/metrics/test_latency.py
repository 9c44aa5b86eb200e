from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.metrics.latency import (
    Latencies,
    gap_ends,
    gaps_ns,
    timing_of,
    token_gaps_ns,
    unsure_events,
    with_timing,
)
from withstand.record import Clock, Record, Status

MS = 1_000_000


def test_times_of_a_paced_answer(answer: Callable[..., Record]) -> None:
    timing = timing_of(answer(at_ms=100, scheduled_ns=90 * MS))
    assert timing.ttft_ns == 50 * MS
    assert timing.tpot_ns == 10 * MS
    assert timing.e2el_ns == 240 * MS
    assert timing.response_ns == 250 * MS
    assert timing.ttft_scheduled_ns == 60 * MS


def test_a_closed_loop_has_no_times_from_schedule(answer: Callable[..., Record]) -> None:
    timing = timing_of(answer(scheduled_ns=None))
    assert (timing.response_ns, timing.ttft_scheduled_ns) == (None, None)


def test_one_token_has_no_tpot(answer: Callable[..., Record]) -> None:
    assert timing_of(answer(tokens=1)).tpot_ns is None
    assert timing_of(answer(output_tokens=None)).tpot_ns is None


def test_an_answer_in_one_piece_has_no_tpot(answer: Callable[..., Record]) -> None:
    record = answer(itl_ms=0)
    assert timing_of(record).tpot_ns is None
    assert timing_of(record).ttft_ns == timing_of(record).e2el_ns == 50 * MS


def test_gaps_of_one_piece_are_0_by_the_kernels_word_only(answer: Callable[..., Record]) -> None:
    assert gaps_ns(answer(itl_ms=0, tokens=3)) == [0, 0]
    assert gaps_ns(answer(itl_ms=0, tokens=3, clock=Clock.USER)) == []


def test_without_a_stream_there_is_only_e2el(answer: Callable[..., Record]) -> None:
    timing = timing_of(answer(streamed=False, chunk_ns=[], end_ns=300 * MS))
    assert (timing.ttft_ns, timing.tpot_ns, timing.e2el_ns) == (None, None, 300 * MS)
    assert gaps_ns(answer(streamed=False)) == []


def test_e2el_ends_with_the_last_token_not_with_done(answer: Callable[..., Record]) -> None:
    assert timing_of(answer(end_ns=900 * MS)).e2el_ns == 240 * MS


def test_gaps_beside_an_unsure_event_are_counted_not_taken_as_known(answer: Callable[..., Record]) -> None:
    fold = Latencies()
    record = answer(tokens=5, chunk_ns=[40 * MS, 50 * MS, 60 * MS, 60 * MS, 70 * MS], unsure=[2])
    fold.add(record, timing_of(record))
    assert gaps_ns(record) == [10 * MS, 10 * MS]
    assert list(gap_ends(record)) == [1, 4]
    assert (fold.output_events, fold.shared_stamps, fold.unsure_gaps, len(fold.itl)) == (5, 1, 2, 2)


def test_of_events_that_our_own_clock_stamped_at_once_only_the_last_is_sure(answer: Callable[..., Record]) -> None:
    stamps_ns = [40 * MS, 60 * MS, 60 * MS, 60 * MS, 70 * MS]
    assert unsure_events(answer(tokens=5, chunk_ns=stamps_ns, clock=Clock.USER)) == [1, 2]
    assert unsure_events(answer(tokens=5, chunk_ns=stamps_ns)) == []


def test_only_good_answers_have_latencies_but_all_have_lateness(answer: Callable[..., Record]) -> None:
    fold = Latencies()
    for record, timing in with_timing([answer(), answer(status=Status.TRUNCATED, ready_ns=0, started_ns=5 * MS)]):
        fold.add(record, timing)
    assert len(fold.ttft) == 1
    assert len(fold.lateness) == 2
    assert fold.lateness.ranked(1) == 5 * MS


def paced(tokens: int, per_event: int, *, told: bool, pace_ns: int = 3 * MS) -> Record:
    """A token every ``pace_ns``; an event goes out when the last of its tokens is there."""
    ends = [*range(per_event, tokens, per_event), tokens]
    sizes = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    return Record(
        id=0,
        stage=0,
        status=Status.OK,
        sent_ns=0,
        chunk_ns=[end * pace_ns for end in ends],
        chunk_tokens=sizes if told else None,
        output_tokens=tokens,
    )


@given(tokens=st.integers(2, 300), per_event=st.integers(1, 50))
def test_tpot_is_right_however_many_tokens_an_event_has(tokens: int, per_event: int) -> None:
    tpot_ns = timing_of(paced(tokens, per_event, told=True)).tpot_ns
    assert tpot_ns == (pytest.approx(3 * MS) if tokens > per_event else None)


@given(tokens=st.integers(2, 300), per_event=st.integers(1, 50))
def test_tpot_is_right_however_many_events_a_read_has(tokens: int, per_event: int) -> None:
    """Each token an event, but the stamp of the last of a read is that of all of them: nobody has to tell."""
    event_ns = [(min(tokens, (i // per_event + 1) * per_event)) * 3 * MS for i in range(tokens)]
    record = Record(id=0, stage=0, status=Status.OK, sent_ns=0, chunk_ns=event_ns, output_tokens=tokens)
    assert timing_of(record).tpot_ns == (pytest.approx(3 * MS) if tokens > per_event else None)


def test_where_nobody_tells_the_first_event_is_one_token_and_tpot_too_low() -> None:
    assert timing_of(paced(20, 4, told=False)).tpot_ns == pytest.approx(16 / 19 * 3 * MS)


@given(tokens=st.integers(2, 300), per_event=st.integers(1, 50))
def test_the_itl_per_token_is_the_servers_pace(tokens: int, per_event: int) -> None:
    gaps = token_gaps_ns(paced(tokens, per_event, told=True))
    assert gaps == pytest.approx([3 * MS] * max(0, tokens - per_event))


def test_the_itl_per_token_is_unknown_where_nobody_tells() -> None:
    assert token_gaps_ns(paced(20, 4, told=False)) == []
    assert token_gaps_ns(paced(20, 1, told=False)) == []


def test_an_event_without_tokens_leaves_its_time_to_the_next(answer: Callable[..., Record]) -> None:
    record = answer(tokens=4, itl_ms=10, chunk_tokens=[1, 0, 2, 1])
    assert token_gaps_ns(record) == [10 * MS, 10 * MS, 10 * MS]


def test_a_claim_without_measure_does_not_fill_the_memory(answer: Callable[..., Record]) -> None:
    assert token_gaps_ns(answer(tokens=2, chunk_tokens=[1, 1 << 40])) == []


def test_tokens_told_of_other_events_are_not_used(answer: Callable[..., Record]) -> None:
    assert token_gaps_ns(answer(tokens=3, chunk_tokens=[1, 1])) == []
    assert timing_of(answer(tokens=3, chunk_tokens=[2])).tpot_ns == 10 * MS


def test_the_mean_of_a_request_averages_a_stall_away(answer: Callable[..., Record]) -> None:
    event_ns = [50 * MS, 60 * MS, 70 * MS, 170 * MS]
    fold = Latencies()
    record = answer(tokens=4, chunk_ns=event_ns)
    fold.add(record, timing_of(record))
    assert [fold.itl_request_mean.ranked(0), fold.itl.ranked(2)] == [40 * MS, 100 * MS]
    assert len(fold.itl_per_token) == 0


@pytest.mark.parametrize("event_ns", [[], [50], [50, 50]])
def test_no_mean_without_a_gap(event_ns: list[int], answer: Callable[..., Record]) -> None:
    assert timing_of(answer(chunk_ns=event_ns)).gap_mean_ns is None
