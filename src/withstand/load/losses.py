"""The requests that a dead worker had on its way: they become records too, for an omission would flatter the rest."""

import contextlib
from collections.abc import Iterator

from withstand.load.job import Job, Report
from withstand.load.sink import RecordSink
from withstand.load.spool import SpoolReader
from withstand.record import Record, Status, decode_record
from withstand.request import Request


def write_lost(job: Job, last: Report, *, start_ns: int, died_ns: int) -> int:
    """Append a record for each request that was due, or in flight by the worker's last report; how many.

    Times are monotonic.
    """
    lost = _lost(job, last, died_ns - start_ns)
    sink = RecordSink(job.records_path)
    for request in lost:
        sink.append(_record(request, job, start_ns - job.epoch_ns))
    sink.close()
    return len(lost)


def _lost(job: Job, last: Report, since_start_ns: int) -> list[Request]:
    seen = set(_recorded(job))
    unseen = [request for request in _spooled(job) if request.id not in seen]
    if job.closed:
        return unseen[: last.in_flight]
    return [request for request in unseen if request.due_ns is not None and request.due_ns <= since_start_ns]


def _spooled(job: Job) -> Iterator[Request]:
    with contextlib.closing(SpoolReader(job.spool_path)) as spool:
        while batch := list(spool.read()):
            yield from batch


def _recorded(job: Job) -> Iterator[int]:
    """Ids of this stage that are on file; a line that the death cut is none."""
    if not job.records_path.exists():
        return
    with job.records_path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n") and (record := decode_record(line)).stage == job.stage:
                yield record.id


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
        streamed=job.ask.stream,
    )
