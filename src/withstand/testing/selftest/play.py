"""Plays cases: one truth server, our real client, and each record beside what would have been right.

A request asks for its behaviour by the name of its model, which the server's log repeats: so all behaviours are mixed
in one stage, and each record finds its entry. The answers to one case are spread over the whole stage, so that a
moment in which the machine was busy elsewhere does not meet them all. What must time out has a stage of its own:
elsewhere patience is long, since a machine that stands still for a second is no fault of the client's.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from withstand import clock
from withstand.app.endpoint import Endpoint
from withstand.errors import MeasureError
from withstand.load.job import Job
from withstand.load.stage import StageDriver, Stripes
from withstand.record import Health, Record, Status, decode_record
from withstand.request import Message, Request
from withstand.spec import Plan, Target, Timeouts
from withstand.testing.selftest.cases import Case
from withstand.testing.truth.behaviours import parts_of
from withstand.testing.truth.process import TruthServer
from withstand.testing.truth.right import Right, expected
from withstand.testing.truth.schedule import Schedule
from withstand.testing.truth.served import Served

TOKENS: Final = 12
SCHEDULE: Final = Schedule(ttft_ms=15, itl_ms=8, tokens=TOKENS, jitter="lognormal:0.5")
_GAP_NS = 12_000_000
_PATIENT = Timeouts(connect_s=20, read_s=20, total_s=60)
_BRIEF = Timeouts(connect_s=20, read_s=1, total_s=60)
_DRAIN_S = 60
_CROWDED_SHARE = 0.05
_SEED = 1


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One answer: our record, and what is right by the log's entry; None = the server never heard of the request."""

    record: Record
    epoch_ns: int
    """Of the record's times, on the log's clock."""
    served: Served | None = None
    right: Right | None = None
    crowded: bool = False
    """Whether the client waited for a core for a noticeable part of the stage."""


class Played(msgspec.Struct, frozen=True):
    """One case with its answers."""

    case: Case
    pairs: tuple[Pair, ...]


def play(cases: Sequence[Case], answers: int, folder: Path) -> list[Played]:
    """Every case, answered so many times; ``folder`` is for what the client writes.

    Raises:
        MeasureError: the client did not come to its end.
    """
    pairs: dict[Case, list[Pair]] = {case: [] for case in cases}
    with TruthServer(SCHEDULE) as server:
        for number, together in enumerate(_stages(cases)):
            for case, pair in _play_stage(server, _order(together, answers), folder / str(number)):
                pairs[case].append(pair)
    return [Played(case, tuple(pairs[case])) for case in cases]


def _stages(cases: Sequence[Case]) -> list[list[Case]]:
    """Those of one dialect and one patience go together."""
    stages: dict[tuple[str, bool], list[Case]] = {}
    for case in cases:
        stages.setdefault((case.dialect, _must_time_out(case)), []).append(case)
    return list(stages.values())


def _must_time_out(case: Case) -> bool:
    return any(part.status is Status.TIMEOUT for part, _ in parts_of(case.behaviour))


def _play_stage(server: TruthServer, asked: Sequence[Case], folder: Path) -> Iterator[tuple[Case, Pair]]:
    server.reset()
    job = _job(server.base_url, asked[0])
    records, health = _drive(job, asked, folder)
    crowded = any(map(_is_crowded, health))
    log = {entry.model: entry for entry in server.truth()}  # of one that was sent again: the last
    for record in records:
        case = asked[record.id]
        served = log.get(_model(record.id, case))
        right = expected(case.behaviour, served) if served else None
        yield case, Pair(record=record, epoch_ns=job.epoch_ns, served=served, right=right, crowded=crowded)


def _is_crowded(health: Health) -> bool:
    return (health.runqueue_wait_ns or 0) > _CROWDED_SHARE * health.wall_ns


def _order(cases: Sequence[Case], answers: int) -> list[Case]:
    """Which case each request asks for."""
    order = list(cases) * answers
    Random(_SEED).shuffle(order)
    return order


def _job(base_url: str, case: Case) -> Job:
    timeouts = _BRIEF if _must_time_out(case) else _PATIENT
    target = Target(base_url=base_url, backend=case.dialect, model="truth", timeouts=timeouts)
    with contextlib.closing(Endpoint(target)) as endpoint:
        return endpoint.job(Plan(target=target, drain_s=_DRAIN_S), stage=0, epoch_ns=clock.now_ns())


def _drive(job: Job, asked: Sequence[Case], folder: Path) -> tuple[list[Record], tuple[Health, ...]]:
    work, records = folder / "work", folder / "records.jsonl"
    work.mkdir(parents=True)
    driver = StageDriver(job, Stripes(workers=1), work, lambda _: records)
    result = driver.run(_requests(asked), lambda: None, lambda *_: None)
    if result.error or result.interrupted:
        raise MeasureError(result.error or "The self-test was interrupted.")
    return [decode_record(line) for line in records.read_bytes().splitlines()], result.health


def _requests(asked: Sequence[Case]) -> Iterator[Request]:
    for number, case in enumerate(asked):
        yield Request(
            id=number,
            session=number,
            due_ns=number * _GAP_NS,
            messages=(Message(role="user", content="Say something."),),
            output_tokens=TOKENS,
            extra_body={"model": msgspec.Raw(msgspec.json.encode(_model(number, case)))},
        )


def _model(number: int, case: Case) -> str:
    """The name by which the log's entry and our record find each other."""
    return f"truth:behaviour={case.behaviour},seed={number}"
