"""One step of a calibration: our own stage driver and workers against the null server, under one load.

Nothing here is a stand-in: the same processes, loop and dialect that a run has send, stamp and record.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from withstand.app.calibration.errors import itl_errors_ns, ttft_errors_ns
from withstand.load.address import locate, parse_address
from withstand.load.job import Job
from withstand.load.null import Account, Begin, NullServer, Served
from withstand.load.stage import StageDriver, StageResult, Stripes
from withstand.metrics.calibration import Load, Step
from withstand.metrics.latency import gap_ends
from withstand.metrics.quantiles import percentile
from withstand.metrics.sample import Sample
from withstand.record import Clock, Record, Status, decode_record
from withstand.request import Message, Request
from withstand.spec import Timeouts
from withstand.wire import Ask

_AWAKE_NS = 60_000
"""A server with a core of its own does not sleep so shortly before a write: it would wake up late."""
_PROMPT = "The quick brown fox jumps over the lazy dog and over the fence, again and again, until it is noon."
_DRAIN_NS = 5_000_000_000
_TIMEOUTS = Timeouts(connect_s=5.0, read_s=5.0, total_s=30.0)


class Bench:
    """Client and null server side by side, each on a core of its own where there are two."""

    def __init__(self) -> None:
        cores = _bindable_cores()
        self._all_cores = frozenset(cores)
        self._client: int | None = cores[0] if len(cores) > 1 else None
        self._server: int | None = cores[-1] if len(cores) > 1 else None
        self._exits = contextlib.ExitStack()
        self._folder: Path
        self._null: NullServer

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as exits:
            name = exits.enter_context(tempfile.TemporaryDirectory(prefix="withstand-calibrate-"))
            self._folder = Path(name)
            self._null = exits.enter_context(NullServer(self._folder / "null.log", self._server))
            self._exits = exits.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self._exits.close()

    @property
    def cores(self) -> int:
        """How many there are for us."""
        return len(self._all_cores) or os.cpu_count() or 1

    @property
    def placement(self) -> str:
        """Who runs where, as a sentence."""
        if self._client is not None:
            return f"The client was bound to core {self._client}, the null server to core {self._server}."
        if self._all_cores:
            return "Client and null server shared the only core, so the client alone is good for more than this."
        return "Client and null server were not bound to cores: this system does not allow it."

    def measure(self, load: Load) -> Step:
        """One step.

        Raises:
            MeasureError: a process of ours did not come up, or died.
            KeyboardInterrupt: the user stopped it.
        """
        records_path = self._folder / "records.jsonl"
        records_path.unlink(missing_ok=True)
        near_ns = _AWAKE_NS if self._client is not None else 0
        self._null.begin(Begin(gap_ns=int(load.gap_s * 1e9), tokens=max(2, load.tokens), near_ns=near_ns))
        driver = StageDriver(self._job(load), Stripes(workers=1), self._folder, lambda _: records_path)
        with self._on_the_clients_core():
            result = driver.run(_requests(load), lambda: None, lambda *_: None)
        if result.interrupted:
            raise KeyboardInterrupt
        with records_path.open("rb") as file:
            records = [decode_record(line) for line in file]
        return step_of(load, records, result, self._null.account())

    @contextlib.contextmanager
    def _on_the_clients_core(self) -> Iterator[None]:
        """Workers inherit their core from us."""
        if self._client is None:
            yield
            return
        os.sched_setaffinity(0, {self._client})
        try:
            yield
        finally:
            os.sched_setaffinity(0, self._all_cores)

    def _job(self, load: Load) -> Job:
        address = parse_address(f"http://127.0.0.1:{self._null.port}")
        return Job(
            worker=0,
            stage=0,
            epoch_ns=0,  # so that records are on the clock of the null server's log
            spool="",
            records="",
            dialect="openai-chat",
            ask=Ask(model="null", stream=load.streamed),
            address=address,
            located=locate(address, _TIMEOUTS.connect_s),
            timeouts=_TIMEOUTS,
            endpoint="/v1/chat/completions",
            headers={"Content-Type": "application/json"},
            drain_ns=_DRAIN_NS,
        )


def _bindable_cores() -> list[int]:
    """The cores that we may bind a process to; none where the system knows no such thing, or forbids it."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    cores = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, cores)
    except OSError:
        return []
    return sorted(cores)


def _requests(load: Load) -> Iterator[Request]:
    """One after another at even times, each with its number in its text."""
    for number in range(max(1, round(load.rate_rps * load.seconds))):
        yield Request(
            id=number,
            session=number,
            due_ns=round(number / load.rate_rps * 1e9),
            messages=(Message(role="user", content=f"calibration {number} {_PROMPT}"),),
            output_tokens=load.tokens,
        )


def step_of(load: Load, records: list[Record], result: StageResult, account: Account) -> Step:
    """The facts of a step from both sides' accounts."""
    (health,) = result.health
    log = {served.number: served for served in account.served}
    whole = [r for r in records if _is_whole(r, load, log)]
    written = sum(len(served.began_ns) for served in account.served)
    stamps = [stamp for r in whole for stamp in r.chunk_ns] if load.streamed else []
    seen = len(stamps) if load.streamed else len(whole)
    return Step(
        load=load,
        clock=Clock.KERNEL if all(r.clock is Clock.KERNEL for r in whole) else Clock.USER,
        requests=len(records),
        failed=len(records) - len(whole),
        events=seen,
        cpu_share=health.cpu_ns / 1e9 / max(1, seen) * load.rate,
        lag_p99_ns=health.lag.p99_ns if health.lag else None,
        itl_error_p99_ns=_p99(itl_errors_ns(whole, log)) if load.streamed else None,
        ttft_error_p99_ns=_p99(ttft_errors_ns(whole, log)) if load.streamed else None,
        late_p99_ns=_p99(
            r.started_ns - r.ready_ns for r in whole if r.started_ns is not None and r.ready_ns is not None
        ),
        unseen_share=_unseen(whole) / max(1, seen),
        server_share=account.busy_ns / 1e9 / max(1, written) * load.rate,
        server_late_p99_ns=account.late_p99_ns,
        waited_share=_share(health.runqueue_wait_ns, health.wall_ns),
    )


def _share(part_ns: int | None, whole_ns: int) -> float | None:
    return None if part_ns is None or not whole_ns else part_ns / whole_ns


def _is_whole(record: Record, load: Load, log: dict[int, Served]) -> bool:
    seen = len(record.chunk_ns) == load.tokens or not load.streamed
    return record.status is Status.OK and seen and record.id in log


def _unseen(records: list[Record]) -> int:
    """Gaps that our own looking away has left unknown."""
    return sum(max(0, len(r.chunk_ns) - 1) - len(gap_ends(r)) for r in records)


def _p99(values: Iterator[int]) -> int | None:
    sample = Sample()
    sample.extend(values)
    return round(percentile(sample, 0.99)) if len(sample) else None
