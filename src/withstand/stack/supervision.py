"""What to do next with a stack's processes. Pure: the supervisor tells what happened and when, and asks.

It tells by a clock that is never set, which decides; what is told to others is by the wall clock, as it was then.

A process is started once all that it needs is ready. One that ends before the stack has ever been up has failed, and
the stack with it, unless it was ready and is to be restarted: it is then, as later too, after 1 s, 2 s, 4 s … 60 s, and
after 1 s when a minute went well. After some starts that came to nothing nobody need wait for it any more, though it is
tried further. Whoever asks has any of them ended and started again, at once.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from withstand.record import STARTED_ANEW
from withstand.stack.blueprint import Process, needing

_BACK_OFF_S, BACK_OFF_MAX_S = 1.0, 60.0
_STEADY_S = 60.0
_ABSENCES_MAX = 100
_HAS_ENDED = "has ended"
VAIN_STARTS = 3
"""So many starts of one that was ready before, each of which came to nothing, and it is not waited for."""


class Phase(StrEnum):
    """How a process stands."""

    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    BACKING_OFF = "backing off"
    ENDING = "ending"
    """It is told to end, and will be started again."""
    LEAVING = "leaving"
    """It has ended, and what came of it is being ended; nobody had told it to."""
    FAILED = "failed"
    ENDED = "ended"


class Absence(Struct, frozen=True):
    """From when to when a process that had been ready was not, by the wall clock."""

    began_s: float
    reason: str
    back_s: float | None = None
    """None = it is not back."""


class Unit:
    """One process as it stands."""

    def __init__(self, process: Process, wall_of: Callable[[float], float]) -> None:
        self.process = process
        self._wall_of = wall_of
        self.phase = Phase.WAITING
        self.steady_s = self.since_s = 0.0
        """Since when, by the clock that decides and by the wall clock."""
        self.ready_after_s: float | None = None
        """How long its last start took."""
        self.restarts = 0
        self.reason = ""
        """Why it ended, in its own words."""
        self.exit_code: int | None = None
        self.absences: list[Absence] = []
        """The last of them."""
        self.vain_starts = 0
        """Those since it was ready, or was started by hand, that came to nothing."""
        self._lasted_s = 0.0
        self._quick_ends = 0
        self._due_s = 0.0

    def startable(self, now_s: float) -> bool:
        """Whether its own turn has come."""
        return self.phase is Phase.WAITING or (self.phase is Phase.BACKING_OFF and now_s >= self._due_s)

    def to(self, phase: Phase, now_s: float) -> None:
        """From now on it is so."""
        self.phase, self.steady_s, self.since_s = phase, now_s, self._wall_of(now_s)

    def leave(self, now_s: float) -> None:
        """It was ready, and is so no more; why, is not known yet."""
        self._lasted_s = now_s - self.steady_s
        self.reason = _HAS_ENDED
        self.gone(now_s, self.reason)
        self.to(Phase.LEAVING, now_s)

    def has_left(self, reason: str) -> None:
        """It is known now."""
        self.absences[-1] = replace(self.absences[-1], reason=reason)

    def back_off(self, now_s: float) -> None:
        """To be started again, later each time that it did not last."""
        lasted_s = self._lasted_s if self.phase is Phase.LEAVING else 0.0
        self._quick_ends = 0 if lasted_s >= _STEADY_S else self._quick_ends + 1
        self._due_s = now_s + min(_BACK_OFF_S * 2 ** max(self._quick_ends - 1, 0), BACK_OFF_MAX_S)
        self.vain_starts += self.phase is not Phase.LEAVING
        self.restarts += 1
        self.to(Phase.BACKING_OFF, now_s)

    def gone(self, now_s: float, reason: str) -> None:
        """It is not ready any more. One that ends again before it was ready is still gone for the first reason."""
        if not self.absences or self.absences[-1].back_s is not None:
            self.absences = [*self.absences[1 - _ABSENCES_MAX :], Absence(self._wall_of(now_s), reason)]

    def back(self, now_s: float) -> None:
        """It is ready, perhaps again."""
        self.vain_starts = 0
        if self.absences:
            self.absences[-1] = replace(self.absences[-1], back_s=self._wall_of(now_s))

    def anew(self, now_s: float) -> None:
        """As if it had never failed; it waits for its turn."""
        self._quick_ends = self.vain_starts = 0
        self.restarts += 1
        self.reason, self.exit_code = "", None
        self.to(Phase.WAITING, now_s)


class Supervision:
    """All processes of a stack."""

    def __init__(self, processes: Sequence[Process], wall_of: Callable[[float], float] = float) -> None:
        self._processes = processes
        self.units = {process.name: Unit(process, wall_of) for process in processes}
        self._was_up = False

    def to_start(self, now_s: float) -> list[Process]:
        """Those whose turn it is."""
        return [unit.process for unit in self.units.values() if unit.startable(now_s) and self._has_all(unit.process)]

    def _has_all(self, process: Process) -> bool:
        return all(self.units[name].phase is Phase.READY for name in process.needs)

    def started(self, name: str, now_s: float) -> None:
        """It runs, and is waited for."""
        self.units[name].to(Phase.STARTING, now_s)

    def healthy(self, name: str, now_s: float) -> None:
        """It has answered."""
        unit = self.units[name]
        unit.ready_after_s = now_s - unit.steady_s
        unit.reason = ""
        unit.back(now_s)
        unit.to(Phase.READY, now_s)
        self._was_up = self._was_up or self.all_ready

    def overdue(self, now_s: float) -> list[str]:
        """Those that have not become ready in their time."""
        return [
            name
            for name, unit in self.units.items()
            if unit.phase is Phase.STARTING and now_s - unit.steady_s > unit.process.upkeep.ready_s
        ]

    def restart(self, name: str, now_s: float) -> bool:
        """Somebody asks for a new start; whether it runs, and is to be ended for that."""
        unit = self.units[name]
        if unit.phase in {Phase.STARTING, Phase.READY, Phase.LEAVING}:
            if unit.ready_after_s is not None:
                unit.gone(now_s, STARTED_ANEW)
            unit.to(Phase.ENDING, now_s)
        elif unit.phase is not Phase.ENDING:
            unit.anew(now_s)
        return unit.phase is Phase.ENDING

    def left(self, name: str, now_s: float) -> None:
        """It has ended, which is told though what came of it still lives; ``ended`` follows."""
        if self.units[name].phase is Phase.READY:
            self.units[name].leave(now_s)

    def ended(self, name: str, now_s: float, reason: str, exit_code: int | None = None) -> None:
        """It is gone; unless it is to start anew, nobody had told it to end."""
        unit = self.units[name]
        if unit.phase is Phase.ENDING:
            unit.anew(now_s)
            return
        self.left(name, now_s)
        unit.reason, unit.exit_code = reason, exit_code
        if unit.phase is Phase.LEAVING:
            unit.has_left(reason)
        if unit.process.upkeep.restart and unit.ready_after_s is not None:
            unit.back_off(now_s)
        else:
            unit.to(Phase.FAILED, now_s)

    @property
    def all_ready(self) -> bool:
        """Whether the stack is up."""
        return all(unit.phase is Phase.READY for unit in self.units.values())

    @property
    def never_up(self) -> Unit | None:
        """One that has failed, or starts in vain, before all were ready: then there is no stack."""
        units = self.units.values()
        failed = (unit for unit in units if unit.phase is Phase.FAILED or unit.vain_starts >= VAIN_STARTS)
        return None if self._was_up else next(failed, None)

    def may_end(self, alive: Iterable[str]) -> list[str]:
        """Of those that are alive the ones that nobody else alive needs."""
        running = set(alive)
        return [name for name in running if not running.intersection(needing(name, self._processes))]
