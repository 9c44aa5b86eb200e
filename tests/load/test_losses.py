"""What a dead worker leaves without a record."""

from pathlib import Path

import msgspec
import pytest

from driving import asked, job_for
from withstand.load.job import Job, Report
from withstand.load.losses import write_lost
from withstand.record import Record, Status, decode_record, encode_record
from withstand.request import Request

START, DIED = 1_000, 1_500
THINK = 100


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Its epoch is 0."""
    spool, records = tmp_path / "spool.jsonl", tmp_path / "records.jsonl"
    return msgspec.structs.replace(job_for("http://127.0.0.1:1"), epoch_ns=0, spool=str(spool), records=str(records))


def spool(job: Job, requests: list[Request]) -> None:
    lines = [msgspec.json.encode(request) for request in requests]
    job.spool_path.write_bytes(b"".join(line + b"\n" for line in [*lines, b'"end"']))


def conversations(count: int) -> list[Request]:
    """Two turns each, all begun at once."""
    first = [msgspec.structs.replace(r, id=2 * r.id, due_ns=0, last_turn=False) for r in asked(count)]
    follow = {"turn": 1, "due_ns": None, "think_ns": THINK, "last_turn": True}
    second = [msgspec.structs.replace(r, id=r.id + 1, **follow) for r in first]
    return [turn for both in zip(first, second, strict=True) for turn in both]


def answered(request: Request, end_ns: int, status: Status = Status.OK) -> bytes:
    record = Record(id=request.id, stage=0, session=request.session, turn=request.turn, status=status, end_ns=end_ns)
    return encode_record(record) + b"\n"


def lost(job: Job) -> list[int]:
    """The ids of the records that say so."""
    records = [decode_record(line) for line in job.records_path.read_bytes().splitlines() if line.endswith(b"}")]
    return [r.id for r in records if r.status is Status.LOST]


def test_what_was_due_by_its_death_and_before_the_stage_s_end(job: Job) -> None:
    spool(job, asked(9, gap_ns=100))
    assert write_lost(job, Report(), start_ns=START, died_ns=DIED) == 6
    job.records_path.unlink()
    short = msgspec.structs.replace(job, duration_ns=200)
    assert write_lost(short, Report(), start_ns=START, died_ns=DIED) == 3


def test_turns_that_follow_a_good_answer_were_on_their_way(job: Job) -> None:
    """The first conversation's second turn was sent, the second's is still thought about, the third has failed."""
    turns = conversations(3)
    spool(job, turns)
    job.records_path.write_bytes(
        answered(turns[0], DIED - THINK)
        + answered(turns[2], DIED - THINK + 1)
        + answered(turns[4], START, Status.HTTP_ERROR)
    )
    write_lost(job, Report(), start_ns=START, died_ns=DIED)
    assert lost(job) == [1]


def test_in_a_closed_loop_a_turn_whose_predecessor_runs_is_not_lost(job: Job) -> None:
    spool(job, conversations(4))
    closed = msgspec.structs.replace(job, closed=True, cap=2)
    write_lost(closed, Report(in_flight=2), start_ns=START, died_ns=DIED)
    assert lost(job) == [0, 2]


def test_half_a_line_of_an_earlier_crash_is_no_record(job: Job) -> None:
    spool(job, asked(2, gap_ns=1))
    job.records_path.write_bytes(b'{"id":1,"sta\n')
    write_lost(job, Report(), start_ns=START, died_ns=DIED)
    assert lost(job) == [0, 1]
