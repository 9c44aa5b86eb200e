"""One stage from its first request to its last: spool, fleet, start, progress, end. Plain sync code over processes."""

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from pathlib import Path

import msgspec

from withstand import clock
from withstand.errors import AwayError
from withstand.load.ear import Ear
from withstand.load.fleet import Fleet, LocalFleet
from withstand.load.interrupts import Interrupts
from withstand.load.job import Command, Job, Report
from withstand.load.losses import write_lost
from withstand.load.member import Member
from withstand.load.patience import Patience
from withstand.load.spool import SpoolWriter
from withstand.load.texts import text_path
from withstand.record import Health
from withstand.request import Request

_READY_S = 60.0
_PATIENCE_NS = 3_000_000_000
_SILENCE_NS = 30_000_000_000
_LISTEN_S = 0.25
_SPOOL_FIRST_BYTES = 64 << 20
_SPOOL_FIRST_REQUESTS = 200_000
_CHUNK_REQUESTS, _CHUNK_NS = 64, 50_000_000
_AHEAD_SESSIONS_MIN, _AHEAD_SESSIONS, _AHEAD_SESSIONS_MAX = 16, 512, 1 << 16
_FIRST_NS = 500_000_000


class Stripes(msgspec.Struct, frozen=True, kw_only=True):
    """A stage's load as the workers share it."""

    workers: int
    cap: int | None = None
    closed: bool = False
    endless: bool = False
    """The stream of requests has no end of its own: it is written a little ahead of what is sent."""

    def cap_of(self, worker: int) -> int | None:
        """The worker's share of the slots."""
        return None if self.cap is None else self.share(self.cap, worker)

    def share(self, whole: int, worker: int) -> int:
        """The worker's part of something that can be counted."""
        return whole // self.workers + (worker < whole % self.workers)


class StageResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a stage went; its records are on file."""

    started_ns: int
    ended_ns: int
    """Both since the run's epoch."""
    health: tuple[Health, ...]
    planned: int
    """Requests that were made ready."""
    interrupted: bool
    error: str | None
    storage: bool = False
    """The error is that records cannot be written."""


class Order(IntEnum):
    """What a listener wants of a stage that goes on."""

    DRAIN = 1
    """Send nothing more, and wait for what runs."""
    STOP = 2
    """End at once."""


Listener = Callable[[Report, int], Order | None]
"""Hears the sum of the workers' reports and the ns since the start; it may end the stage."""

Muster = Callable[[Sequence[Job], Path], Fleet]
"""Calls up a worker for each job; the path is that of a log."""


class StageDriver:
    """Drives one stage. ``job`` is the template that every worker's job is made from."""

    def __init__(
        self,
        job: Job,
        stripes: Stripes,
        folder: Path,
        record_path: Callable[[int], Path],
        muster: Muster = LocalFleet,
        patience: Patience | None = None,
    ) -> None:
        """``patience``: that of whoever makes the requests; while it waits the stage goes on."""
        self._muster = muster
        self._patience = patience or Patience()
        self._stripes = stripes
        self._folder = folder
        self._job = job
        self._record_path = record_path

    def run(self, requests: Iterator[Request], begun: Callable[[], None], listener: Listener) -> StageResult:
        """Send them all, or as many as the stage's duration allows; ``begun`` is called when all is ready.

        Raises:
            WithstandError: nothing was measured (the workers did not start, the plan's requests cannot be made).
        """
        with SpoolWriter(self._folder, self._stripes.workers) as spool:
            jobs = [self._job_of(spool, i) for i in range(self._stripes.workers)]
            with self._muster(jobs, self._folder / "workers.log") as fleet:
                feeder = _Feeder(spool, requests, self._stripes)
                feeder.fill_first()
                fleet.wait_ready(_READY_S)
                begun()
                with Interrupts() as interrupts:
                    return self._drive(fleet, feeder, interrupts, listener)

    def _job_of(self, spool: SpoolWriter, worker: int) -> Job:
        return msgspec.structs.replace(
            self._job,
            worker=worker,
            spool=str(spool.path(worker)),
            records=str(self._record_path(worker)),
            texts=str(text_path(self._folder, worker)) if self._job.text_share else None,
            cap=self._stripes.cap_of(worker),
            preconnect=self._stripes.share(self._job.preconnect, worker),
            closed=self._stripes.closed,
        )

    def _drive(self, fleet: Fleet, feeder: "_Feeder", interrupts: Interrupts, listener: Listener) -> StageResult:
        start_ns = fleet.start()
        course = _Course(fleet, feeder, interrupts, listener, start_ns)
        with self._patience.meanwhile(course.goes_on):
            while not fleet.ended:
                feeder.go_on(course.look(0.0 if feeder.busy else _LISTEN_S))
        for member in fleet.members:
            if member.lost:
                assert member.ended_ns is not None
                write_lost(member.job, member.report, start_ns=start_ns, died_ns=member.ended_ns)
        return StageResult(
            started_ns=start_ns - self._job.epoch_ns,
            ended_ns=max(start_ns, clock.now_ns()) - self._job.epoch_ns,  # without an arrival it ends before it starts
            health=tuple(m.health() for m in fleet.members),
            planned=feeder.written,
            interrupted=interrupts.count > 0,
            error=fleet.error() or _loss(fleet),
            storage=any(m.report.storage for m in fleet.members),
        )


class _Course:
    """What the workers tell on the way, and the orders that follow from it."""

    def __init__(
        self, fleet: Fleet, feeder: "_Feeder", interrupts: Interrupts, listener: Listener, start_ns: int
    ) -> None:
        self._fleet = fleet
        self._feeder = feeder
        self._interrupts = interrupts
        self._listener = listener
        self._start_ns = start_ns
        self._orders, self._watch = _Orders(fleet, feeder), _Watch(fleet, start_ns)
        self._wanted = 0

    def look(self, timeout_s: float) -> int:
        """How many sessions the workers have taken by now."""
        fleet, interrupts = self._fleet, self._interrupts.count
        fleet.listen(timeout_s)
        self._orders.obey(max(interrupts, self._wanted, fleet.error() is not None))
        total = _sum(fleet.members, self._watch.look(), interrupts)
        self._wanted = max(self._wanted, self._listener(total, max(0, clock.now_ns() - self._start_ns)) or 0)
        return total.taken

    def goes_on(self, timeout_s: float) -> bool:
        """Look, while the next request is waited for; whether it is still wanted."""
        self.look(min(timeout_s, _LISTEN_S))
        if self._fleet.ended:
            self._feeder.stop()
        return not self._feeder.ended


class _Orders:
    """The first interrupt drains, the second stops; who has not stopped three seconds later is ended."""

    def __init__(self, fleet: Fleet, feeder: "_Feeder") -> None:
        self._fleet = fleet
        self._feeder = feeder
        self._given = 0
        self._stopped_ns: int | None = None

    def obey(self, interrupts: int) -> None:
        """Give the orders that are due."""
        if interrupts > self._given:
            self._given = interrupts
            self._feeder.stop()
            self._fleet.tell(Command(drain=interrupts == 1, stop=interrupts > 1))
            if interrupts > 1 and self._stopped_ns is None:
                self._stopped_ns = clock.now_ns()
        if self._stopped_ns is not None and clock.now_ns() - self._stopped_ns > _PATIENCE_NS:
            self._fleet.kill()


class _Watch:
    """A worker reports a few times a second: who says nothing for half a minute is given up, lest a stage never end."""

    def __init__(self, fleet: Fleet, start_ns: int) -> None:
        self._fleet = fleet
        self._ear = Ear(start_ns)

    def look(self) -> int:
        """For how long the most silent worker has said nothing."""
        listened_ns = self._ear.listened_ns()
        for member in [m for m in self._fleet.members if not m.ended]:
            member.silent_ns += listened_ns
            if member.silent_ns > _SILENCE_NS:
                self._fleet.give_up(member, f"it said nothing for {_SILENCE_NS / 1e9:g} s")
        return max((m.silent_ns for m in self._fleet.members if not m.ended), default=0)


class _Feeder:
    """Writes the stream into the spool: all of it beforehand where that is little, else ahead of the workers.

    Making a request may be slow, and may cost the very server that is measured (it counts the tokens): of a stream
    without end as many are made as there is time for, and then as many as were taken.
    """

    def __init__(self, spool: SpoolWriter, requests: Iterator[Request], stripes: Stripes) -> None:
        self._spool = spool
        self._requests = requests
        self._endless = stripes.endless
        self._sessions = self._taken = 0
        at_once = min(2 * (stripes.cap or 0), _AHEAD_SESSIONS_MAX)
        self._least = max(_AHEAD_SESSIONS_MIN, at_once)
        self._ahead = max(_AHEAD_SESSIONS, at_once)
        self.ended = False
        self.busy = False

    @property
    def written(self) -> int:
        """Requests so far."""
        return sum(self._spool.written)

    def fill_first(self) -> None:
        """What there is time for before the start; where time ran out, half of it is what is kept ahead."""
        late_ns = clock.now_ns() + _FIRST_NS
        while not self.ended and not self._enough(late := clock.now_ns() > late_ns):
            self._write_some(_CHUNK_REQUESTS)
        if late and self._endless:
            self._ahead = max(self._least, self._sessions) // 2
        self._spool.flush()

    def _enough(self, late: bool) -> bool:
        if self._spool.bytes >= _SPOOL_FIRST_BYTES:
            return True
        if not self._endless:
            return self.written >= _SPOOL_FIRST_REQUESTS
        return self._sessions >= (self._least if late else self._ahead)

    def go_on(self, taken: int) -> None:
        """A little more, if the workers have not enough ahead of them."""
        left = self._sessions - taken
        if taken != self._taken and left < self._wanted // 4:  # they had nearly run out of it between two reports
            self._ahead = min(2 * self._ahead, _AHEAD_SESSIONS_MAX)
        self._taken = taken
        self.busy = not self.ended and left < self._wanted
        if self.busy:
            self._write_some(min(_CHUNK_REQUESTS, self._wanted - left))
            self._spool.flush()

    @property
    def _wanted(self) -> int:
        """How many sessions there are to be before the workers, who tell a few times a second how many they took."""
        room = _SPOOL_FIRST_BYTES * self._sessions // max(1, self._spool.bytes)
        return min(self._ahead, max(_AHEAD_SESSIONS, room))

    def _write_some(self, most: int) -> None:
        """No longer than the workers may be left alone."""
        until_ns = clock.now_ns() + _CHUNK_NS
        for _ in range(most):
            request = self._next()
            if request is None:
                self.stop()
                return
            self._sessions += request.turn == 0
            self._spool.write(request)
            if clock.now_ns() > until_ns:
                return

    def _next(self) -> Request | None:
        try:
            return next(self._requests, None)
        except AwayError:
            if self.ended:  # while it was waited for
                return None
            raise

    def stop(self) -> None:
        """No more."""
        if not self.ended:
            self.ended = True
            self.busy = False
            self._spool.finish()


def _sum(members: Sequence[Member], silent_ns: int, interrupts: int) -> Report:
    reports = [m.report for m in members]
    return Report(
        taken=sum(r.taken for r in reports),
        sent=sum(r.sent for r in reports),
        done=sum(r.done for r in reports),
        failed=sum(r.failed for r in reports),
        in_flight=sum(r.in_flight for r in reports),
        output_tokens=sum(r.output_tokens for r in reports),
        unheard_ns=min((m.report.unheard_ns for m in members if not m.ended), default=0),
        silent_ns=silent_ns,
        interrupts=interrupts,
    )


def _loss(fleet: Fleet) -> str | None:
    lost = [m for m in fleet.members if m.lost]
    if not lost:
        return None
    workers = ", ".join(str(m.job.worker) for m in lost)
    return f"Worker {workers} died in mid-stage ({lost[0].why}); what was on file by then is kept."
