"""Records of answers that never happened, paced exactly: for tests of whatever judges records."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from withstand.record import Record, Status, TokensFrom
from withstand.testing.truth.schedule import Schedule, offsets_ns

_NS_PER_MS = 1_000_000
_PROMPT_TOKENS = 32


def make_record(number: int = 0, schedule: Schedule | None = None, *, sent_ms: float = 0.0, **changes: Any) -> Record:
    """A successful streamed answer of that schedule, sent at ``sent_ms``; ``changes`` are fields of the record."""
    schedule = schedule or Schedule()
    sent_ns = round(sent_ms * _NS_PER_MS)
    chunk_ns = [sent_ns + offset_ns for offset_ns in offsets_ns(schedule, schedule.tokens, number)]
    record = Record(
        id=number,
        stage=0,
        status=Status.OK,
        scheduled_ns=sent_ns,
        ready_ns=sent_ns,
        started_ns=sent_ns,
        sent_ns=sent_ns,
        first_byte_ns=chunk_ns[0],
        chunk_ns=chunk_ns,
        end_ns=chunk_ns[-1],
        prompt_tokens=_PROMPT_TOKENS,
        output_tokens=schedule.tokens,
        tokens_from=TokensFrom.SERVER,
        requested_output_tokens=schedule.tokens,
        finish_reason="length",
        http_status=200,
        reused=number > 0,
    )
    return replace(record, **changes)


def make_failure(
    number: int = 0, status: Status = Status.HTTP_ERROR, *, sent_ms: float = 0.0, **changes: Any
) -> Record:
    """A request that was sent and came to nothing 1 ms later."""
    sent_ns = round(sent_ms * _NS_PER_MS)
    record = Record(
        id=number,
        stage=0,
        status=status,
        scheduled_ns=sent_ns,
        ready_ns=sent_ns,
        started_ns=sent_ns,
        sent_ns=sent_ns,
        end_ns=sent_ns + _NS_PER_MS,
        error=f"made up: {status.value}",
    )
    return replace(record, **changes)


def make_run(count: int, rate_rps: float, schedule: Schedule | None = None, **changes: Any) -> Iterator[Record]:
    """Successful answers, one every 1 / ``rate_rps`` seconds."""
    for number in range(count):
        yield make_record(number, schedule, sent_ms=number * 1000 / rate_rps, **changes)
