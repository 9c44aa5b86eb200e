"""Made-up records are what a perfect client would have written of a perfect server."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from withstand.record import Status, decode_record, encode_record
from withstand.testing import Schedule
from withstand.testing.records import make_failure, make_record, make_run


@given(st.floats(0, 1000), st.floats(0, 100), st.integers(1, 50), st.floats(0, 1e5))
def test_a_record_has_the_schedules_times(ttft_ms: float, itl_ms: float, tokens: int, sent_ms: float) -> None:
    record = make_record(3, Schedule(ttft_ms, itl_ms, tokens), sent_ms=sent_ms)
    assert record.sent_ns is not None
    offsets_ms = [(at_ns - record.sent_ns) / 1e6 for at_ns in record.chunk_ns]
    assert all(abs(ms - (ttft_ms + i * itl_ms)) < 1e-5 for i, ms in enumerate(offsets_ms))
    assert (record.output_tokens, len(record.chunk_ns), record.end_ns) == (tokens, tokens, record.chunk_ns[-1])
    assert decode_record(encode_record(record)) == record


def test_fields_can_be_changed() -> None:
    assert make_record(1, stage=2, finish_reason="stop").finish_reason == "stop"
    assert make_failure(1, Status.LIMITED, http_status=429).status is Status.LIMITED
    assert make_failure(1).chunk_ns == []


def test_a_run_is_evenly_spaced() -> None:
    sent_ns = [record.sent_ns for record in make_run(5, rate_rps=4)]
    assert [b - a for a, b in itertools.pairwise(filter(lambda x: x is not None, sent_ns))] == [250_000_000] * 4
