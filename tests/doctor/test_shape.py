"""How answers come, from made-up reads: each rule of holding back has its own print."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.doctor.finding import Verdict
from withstand.doctor.heard import Heard, Read
from withstand.doctor.shape import Kind, pieces_of, shape_of
from withstand.doctor.streaming import judge_framing, judge_shape
from withstand.record import Status

MS = 1_000_000
EVENT_BYTES = 200


def heard(reads: list[Read], *, tokens: int | None = None, streamed: bool = True, end_ms: float | None = None) -> Heard:
    events = tuple(read.stamp_ns for read in reads for _ in range(read.events))
    return Heard(
        status=Status.OK,
        sent_ns=0,
        reads=tuple(reads),
        events_ns=events,
        end_ns=round(end_ms * MS) if end_ms else reads[-1].stamp_ns,
        usage_tokens=tokens if tokens is not None else len(events),
        streamed=streamed,
    )


def at(ms: float, events: int = 1, *, whole: bool = True) -> Read:
    return Read(round(ms * MS), events * EVENT_BYTES, events, whole)


def engine(tokens: int, ttft_ms: float = 50, itl_ms: float = 10) -> list[float]:
    """When an engine says each token."""
    return [ttft_ms + i * itl_ms for i in range(tokens)]


WHOLE = heard([at(1000)], streamed=False, end_ms=1000)
SHORT = heard([at(ms) for ms in engine(4)])


def test_a_real_stream() -> None:
    seen = shape_of([heard([at(ms) for ms in engine(96)])], [SHORT], [WHOLE])
    assert seen.kind is Kind.STREAMS
    assert seen.held_share == 0
    assert "one every 10.0 ms" in judge_shape(seen, None).said


def test_held_back_whole() -> None:
    seen = shape_of([heard([at(1000, 60), at(1000.2, 36)])], [SHORT], [WHOLE])
    assert seen.kind is Kind.WHOLE
    assert seen.pieces == 1
    assert "proxy_buffering off" in judge_shape(seen, None).cure


def test_played_out() -> None:
    seen = shape_of([heard([at(1000 + 5 * i) for i in range(96)])], [SHORT], [WHOLE])
    assert seen.kind is Kind.FAKE
    assert seen.held_share == pytest.approx(1, abs=0.1)


def test_where_short_answers_have_no_text_a_late_first_token_says_nothing() -> None:
    """An agent's few tokens are the head of a call: against nothing, its first token looked held back."""
    none_yet = heard([at(400, 0)], tokens=4)
    seen = shape_of([heard([at(900 + 10 * i) for i in range(9)])], [none_yet], [WHOLE])
    assert seen.kind is Kind.UNKNOWN
    finding = judge_shape(seen, None)
    assert (finding.verdict, "short answers have no text" in finding.said) == (Verdict.DOUBT, True)


def test_a_text_that_waits_for_tokens_that_are_none_is_not_held_back() -> None:
    """An agent says nothing of the head of its call: here of 10 tokens, of which 18 take 1000 ms."""
    head_s = heard([at(600 + 50 * i) for i in range(8)], tokens=18)
    seen = shape_of([head_s], [SHORT], [WHOLE])
    assert (seen.kind, seen.is_open) == (Kind.UNKNOWN, True)
    assert "55.6 % of the tokens came without" in judge_shape(seen, None).said


def test_a_buffer_of_bytes_cuts_inside_of_events() -> None:
    pieces = [at(250 + 200 * i, 20, whole=False) for i in range(4)] + [at(1000, 16)]
    seen = shape_of([heard(pieces)], [heard([at(80, 4)])], [WHOLE])
    assert seen.kind is Kind.BY_SIZE
    assert seen.piece_bytes == 20 * EVENT_BYTES


def test_a_batch_of_time_does_not() -> None:
    seen = shape_of([heard([at(50 + 50 * i, 5) for i in range(20)])], [SHORT], [WHOLE])
    assert seen.kind is Kind.BY_TIME
    assert "5.0 events every 50 ms" in judge_shape(seen, None).said


def test_a_busy_moment_is_no_batch() -> None:
    reads = [at(50 + 10 * i) for i in range(30)] + [at(700, 40)] + [at(710 + 10 * i) for i in range(26)]
    assert shape_of([heard(reads)], [SHORT], [WHOLE]).kind is Kind.STREAMS


def test_a_fast_engine_is_no_batch() -> None:
    fast = heard([at(50 + 4 * i, 4) for i in range(24)])
    assert shape_of([fast], [heard([at(50, 4)])], [heard([at(146)], streamed=False)]).kind is Kind.STREAMS


def test_one_body_is_no_stream() -> None:
    assert shape_of([WHOLE], [WHOLE], [WHOLE]).kind is Kind.ONE_BODY


def test_a_fast_engine_tells_nothing() -> None:
    fast = heard([at(1 + i / 100, 1) for i in range(96)])
    assert shape_of([fast], [heard([at(1, 4)])], [heard([at(2)], streamed=False)]).kind is Kind.UNKNOWN


def test_where_lengths_are_lost_a_late_first_token_is_still_seen() -> None:
    """The short answer is as long as the long one: only the whole answer's time is left to compare with."""
    late = heard([at(950 + 5 * i) for i in range(96)])
    assert shape_of([late], [late], [WHOLE]).kind is Kind.FAKE
    real = heard([at(ms) for ms in engine(96)])
    assert shape_of([real], [real], [WHOLE]).kind is Kind.STREAMS


@given(st.lists(st.tuples(st.integers(0, 3_000_000), st.integers(0, 5), st.booleans()), max_size=60))
def test_pieces_keep_all_events_and_stand_apart(rows: list[tuple[int, int, bool]]) -> None:
    stamp_ns, reads = 0, []
    for gap_ns, events, whole in rows:
        stamp_ns += gap_ns
        reads.append(Read(stamp_ns, events * EVENT_BYTES, events, whole))
    pieces = pieces_of(reads)
    assert sum(piece.events for piece in pieces) == sum(read.events for read in reads)
    assert all(later.stamp_ns - earlier.stamp_ns > 500_000 for earlier, later in pairwise(pieces))


def test_an_end_by_the_connection_is_a_doubt() -> None:
    (framing, end) = judge_framing([Heard(status=Status.OK, version="1.0", done=True, streamed=True)])
    assert framing.verdict == "doubt"
    assert "HTTP/1.0" in framing.said
    assert end.verdict == "doubt"
