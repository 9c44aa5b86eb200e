from collections.abc import Callable

from withstand.metrics.latency import Latencies, gap_ends, gaps_ns, timing_of, unsure_events, with_timing
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
