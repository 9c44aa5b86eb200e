"""Looks from time to time at who is waited for, and has engines started and stopped accordingly.

Nothing is remembered of a request: who waits is seen anew with each look, so one who has left is not waited for.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from withstand import clock
from withstand.gateway.address import Origin
from withstand.gateway.engine import Engine, Seat
from withstand.gateway.hosting.config import HostConfig
from withstand.gateway.hosting.orphans import end_orphans
from withstand.gateway.hosting.process import Place, Process, State
from withstand.gateway.hosting.residence import Resident, Room, Wanted, plan
from withstand.gateway.roster import Model


class Need(Struct, frozen=True):
    """An engine that is to be started for those who wait, and one that is up and of no use without it, if any."""

    cold: Process | None
    beside: Process | None = None


class Host:
    """``changed`` is called after each change of an engine's state, ``started`` with its name and cold start in ns."""

    def __init__(
        self,
        config: HostConfig,
        now_s: Callable[[], float],
        changed: Callable[[], None],
        started: Callable[[str, int], None],
    ) -> None:
        self.config = config
        self._now_s = now_s
        self._changed = changed
        self._started = started
        self._place: Place | None = None
        self._asked_ns: dict[Origin, int] = {}
        """Who is waited for and has no memory yet, in the order in which they came to be."""
        self._ending = False

    def look(self, engines: Iterable[Engine], needs: Iterable[Need]) -> None:
        """Start and stop what is to be."""
        hosted = {e.name: (e, e.process) for e in engines if e.process is not None}
        if self._ending or not hosted:
            return
        now_s = self._now_s()
        beside = self._note(needs, now_s)
        waiting = [Wanted(origin.name, hosted[origin.name][1].memory_gb, beside[origin]) for origin in self._asked_ns]
        there = [_resident(engine, process, now_s) for engine, process in hosted.values() if process.has_memory]
        room = Room(self.config.memory_gb or float("inf"), self.config.residence_s)
        decided = plan(there, waiting, room, now_s)
        for name, (engine, process) in hosted.items():
            process.closing = name in decided.closing
            process.trust(now_s)
            if name in decided.stop:
                engine.close_idle(float("inf"))
                process.stop()
        for name in decided.start:
            engine, process = hosted[name]
            engine.breaker.worked()  # what failed was the one before
            engine.since_s = now_s
            process.start(self._shared(), self._asked_ns.pop(process.origin))

    def _note(self, needs: Iterable[Need], now_s: float) -> dict[Origin, str | None]:
        """Since when each is waited for, one that nobody waits for any more anew; and what each goes with."""
        now_ns = clock.now_ns()
        beside: dict[Origin, str | None] = {}
        for need in needs:
            if need.beside is not None:
                need.beside.used_s = now_s  # it is about to be
            if need.cold is not None:
                beside.setdefault(need.cold.origin, need.beside.origin.name if need.beside is not None else None)
        kept = {origin: since_ns for origin, since_ns in self._asked_ns.items() if origin in beside}
        self._asked_ns = kept | {origin: now_ns for origin in beside if origin not in kept}
        return beside

    def _shared(self) -> Place:
        """Made with the first start: a gateway that starts nothing leaves no folder."""
        if self._place is None:
            folder = state_folder(self.config)
            cleared = asyncio.ensure_future(end_orphans(folder))
            self._place = Place(folder, cleared, self._now_s, self._changed, self._started)
        return self._place

    async def close(self, engines: Iterable[Engine]) -> None:
        """End them all."""
        self._ending = True
        hosted = [engine.process for engine in engines if engine.process is not None]
        for process in hosted:
            process.stop()
        await asyncio.gather(*(process.gone() for process in hosted))


def needs_of(models: Iterable[Model], now_s: float) -> Iterator[Need]:
    """Of each model that somebody waits for, in each part of it that they wait for."""
    for model in models:
        if model.room:
            for part in model.lacking(now_s):
                other = model if part is model.prefill else model.prefill
                yield Need(_first_cold(part.coming(now_s)), None if other is None else _first_up(other.seats))


def _first_cold(seats: Iterable[Seat]) -> Process | None:
    """None while another is being started."""
    processes = [seat.engine.process for seat in seats if seat.engine.process is not None]
    if any(process.state is State.STARTING for process in processes):
        return None
    return next((process for process in processes if process.state is State.COLD), None)


def _first_up(seats: Iterable[Seat]) -> Process | None:
    up = [seat.engine.process for seat in seats if seat.engine.is_there and seat.engine.process is not None]
    return next((process for process in up if process.state is State.UP), None)


def state_folder(config: HostConfig) -> Path:
    """Where logs and records are."""
    if config.state:
        return Path(config.state)
    if ours := os.environ.get("WITHSTAND_STATE"):
        return Path(ours) / "engines"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "withstand/engines"


def _resident(engine: Engine, process: Process, now_s: float) -> Resident:
    if engine.in_flight or engine.sent != process.begun_seen:
        process.used_s, process.begun_seen = now_s, engine.sent
    return Resident(
        name=engine.name,
        memory=process.memory_gb,
        up=process.state is State.UP,
        stopping=process.state is State.STOPPING,
        in_flight=engine.in_flight,
        used_s=process.used_s,
        since_s=process.ready_s,
        idle_s=process.told.idle_s,
        unwanted=process.is_outdated or engine.removed,
    )
