"""Drives real workers against a real server."""

import os
import signal
import socket
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest

from withstand import clock
from withstand.load.address import Located, locate, parse_address
from withstand.load.fleet import LocalFleet
from withstand.load.job import Job
from withstand.load.patience import Patience
from withstand.load.stage import Muster, StageDriver, StageResult, Stripes
from withstand.record import Record, decode_record
from withstand.request import Message, Request
from withstand.spec import Timeouts
from withstand.wire import Ask

ASK = Ask(model="truth")
TIMEOUTS = Timeouts(connect_s=2.0, read_s=1.0, total_s=20.0)


class Driven:
    """What came of a stage."""

    def __init__(self, result: StageResult, records: list[Record]) -> None:
        self.result = result
        self.records = sorted(records, key=lambda r: r.id)


Drive = Callable[..., Driven]


def asked(count: int, *, tokens: int | None = 5, gap_ns: int | None = None, text: str = "hello") -> list[Request]:
    """``count`` single requests, one every ``gap_ns``."""
    return [
        Request(
            id=i,
            session=i,
            due_ns=None if gap_ns is None else i * gap_ns,
            messages=(Message(role="user", content=f"{text} {i}"),),
            output_tokens=tokens,
        )
        for i in range(count)
    ]


def job_for(base_url: str, **fields: object) -> Job:
    """A job without spool and records."""
    address = parse_address(base_url)
    job = Job(
        worker=0,
        stage=0,
        epoch_ns=clock.now_ns(),
        spool="",
        records="",
        dialect="openai-chat",
        ask=ASK,
        address=address,
        located=Located(family=socket.AF_INET, sockaddr=(address.host, address.port)),
        timeouts=TIMEOUTS,
        endpoint=address.url("/v1/chat/completions"),
        headers={"Content-Type": "application/json"},
        drain_ns=5_000_000_000,
    )
    return msgspec.structs.replace(job, **fields)


def interrupting(*at_s: float) -> Callable[[object, int], None]:
    """A listener that interrupts us at each of these times since the start."""
    left = list(at_s)

    def listen(_report: object, since_start_ns: int) -> None:
        if left and since_start_ns / 1e9 > left[0]:
            del left[0]
            os.kill(os.getpid(), signal.SIGINT)

    return listen


@pytest.fixture
def drive(tmp_path: Path) -> Drive:
    """``drive(base_url, requests, cap=…, workers=…, job fields…)``."""

    def run(
        base_url: str,
        requests: Iterable[Request],
        *,
        cap: int | None = None,
        workers: int = 1,
        endless: bool = False,
        listener: Callable[..., None] = lambda *_: None,
        ask: Ask = ASK,
        muster: Muster = LocalFleet,
        patience: Patience | None = None,
        **fields: object,
    ) -> Driven:
        requests = list(requests) if not endless else requests
        located = locate(parse_address(base_url), 2.0)
        job = job_for(base_url, **{"located": located, "ask": ask, **fields})
        closed = endless or all(r.due_ns is None for r in requests)
        stripes = Stripes(workers=workers, cap=cap, closed=closed and cap is not None, endless=endless)
        work = tmp_path / "work"
        work.mkdir(exist_ok=True)
        result = StageDriver(job, stripes, work, lambda w: tmp_path / f"records.w{w}.jsonl", muster, patience).run(
            iter(requests), lambda: None, listener
        )
        parts = list(tmp_path.glob("records.*"))
        lines = [line for path in parts for line in path.read_bytes().splitlines()]
        for part in parts:
            part.unlink()
        return Driven(result, [decode_record(line) for line in lines])

    return run
