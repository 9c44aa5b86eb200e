"""The requests that a dead worker had on its way: they become records too, for an omission would flatter the rest."""

import contextlib
from collections.abc import Iterator
from itertools import islice

import msgspec

from withstand.load.job import Job, Report
from withstand.load.sink import RecordSink
from withstand.load.spool import SpoolReader
from withstand.record import Record, Status, decode_record
from withstand.request import Request

_Ends = dict[tuple[int | None, int], int | None]
"""By session and turn, what is on file; when a good answer ended, None = it was not good."""


def write_lost(job: Job, last: Report, *, start_ns: int, died_ns: int) -> int:
    """Append a record for each request that was due, or in flight by the worker's last report; how many.

    Times are monotonic.
    """
    until_ns = died_ns if job.duration_ns is None else min(died_ns, start_ns + job.duration_ns)
    lost = list(_lost(job, last, start_ns, until_ns))
    sink = RecordSink(job.records_path)
    for request in lost:
        sink.append(_record(request, job, start_ns - job.epoch_ns))
    sink.close()
    return len(lost)


def _lost(job: Job, last: Report, start_ns: int, until_ns: int) -> Iterator[Request]:
    """What was due and has no record; in a closed loop, where all is due, as many of it as were in flight."""
    ends = _recorded(job)
    unseen = (request for request in _spooled(job) if (request.session, request.turn) not in ends)
    due = (r for r in unseen if (due_ns := _due_ns(r, job, start_ns, ends)) is not None and due_ns <= until_ns)
    return islice(due, last.in_flight if job.closed else None)


def _due_ns(request: Request, job: Job, start_ns: int, ends: _Ends) -> int | None:
    """A turn is due its think time after a good answer to the one before it; None = never."""
    if request.turn == 0:
        return start_ns + (0 if job.closed else request.due_ns or 0)
    end_ns = ends.get((request.session, request.turn - 1))
    return None if end_ns is None else job.epoch_ns + end_ns + request.think_ns


def _spooled(job: Job) -> Iterator[Request]:
    with contextlib.closing(SpoolReader(job.spool_path)) as spool:
        while batch := list(spool.read()):
            yield from batch


def _recorded(job: Job) -> _Ends:
    """What of this stage is on file."""
    ours = (record for record in _whole_records(job) if record.stage == job.stage)
    return {(r.session, r.turn): r.end_ns if r.status is Status.OK else None for r in ours}


def _whole_records(job: Job) -> Iterator[Record]:
    """A line that this death or an earlier crash has cut is none."""
    if not job.records_path.exists():
        return
    with job.records_path.open("rb") as file:
        for line in file:
            with contextlib.suppress(msgspec.MsgspecError):
                yield decode_record(line)


def _record(request: Request, job: Job, shift_ns: int) -> Record:
    return Record(
        id=request.id,
        stage=job.stage,
        worker=job.worker,
        session=request.session,
        turn=request.turn,
        status=Status.LOST,
        scheduled_ns=None if job.closed or request.due_ns is None else request.due_ns + shift_ns,
        prompt_tokens=request.prompt_tokens,
        requested_output_tokens=request.output_tokens,
        error="Our worker died while this was due or on its way",
        correct=False if request.expected else None,
        streamed=job.ask.stream,
    )
