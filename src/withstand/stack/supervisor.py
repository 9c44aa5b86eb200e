"""The process that a stack hangs on: starts its services in order, starts them again, ends them in the reverse order.

``python -m withstand.stack.supervisor FOLDER < BLUEPRINT`` writes the state, and ends at SIGTERM, or once the folder is
not its own any more. Each service has a keeper of its own: should the supervisor be killed, the keepers end what is
theirs; should a keeper be killed, what is left of its service becomes the supervisor's, who ends it.
"""

import ctypes
import os
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from socket import gethostname

from withstand import clock
from withstand.errors import WithstandError
from withstand.processes import shared_memory
from withstand.processes.cut import cut
from withstand.processes.diary import note
from withstand.processes.identity import (
    Identity,
    boot,
    children_of,
    end,
    has_come_of,
    identity_of,
    in_session,
    is_marked,
    marked,
    pid_space,
    reap,
)
from withstand.stack.blueprint import Blueprint, Process
from withstand.stack.deed import Deed
from withstand.stack.kept import Kept, begun
from withstand.stack.orders import heard, ordered
from withstand.stack.ports import NOBODY, stranger_on
from withstand.stack.secrets import environment
from withstand.stack.standing import is_supervisor
from withstand.stack.state import MARK, TAKEN_DOWN, StackState, UnitState, has_state, scratch_name, write_state
from withstand.stack.supervision import Phase, Supervision, Unit
from withstand.wire.reply import one_line

_LOOK_S = 0.05
_LOOK_AT_FILES_S = 1.0
"""So often are looked at the sizes of logs, the shared memory of who is not ready yet, and whether the state stands."""
_LINGERS_S = 0.5
"""A service whose group has not ended with it by then is told as leaving; else at once with how it ended."""
_PATIENCE_S = 2.0
"""So long who waits for the stack may hear nothing of it, because the disk is full."""
_PR_SET_CHILD_SUBREAPER = 36


class Supervisor:
    """One stack."""

    def __init__(self, folder: Path, blueprint: Blueprint, deed: Deed) -> None:
        self._folder, self._deed = folder, deed
        self._supervision = Supervision(blueprint.processes, clock.on_the_wall)
        self._kept: dict[str, Kept] = {}
        self._began_s = clock.wall_s()
        self._mark, self._boot = token_hex(16), boot()
        self._scratch = Path(tempfile.gettempdir()) / scratch_name(self._mark)
        self._elsewhere = blueprint.scratch
        self._shared: set[str] = set()
        self._others_shared = shared_memory.there()
        self._looked_s = clock.steady_s()
        self._told_to_end = False
        self._heard: set[str] = set()
        self._ended: str | None = None
        self._written: StackState | None = None
        self._is_told = False
        self._has_told_ready = False
        self._unwritten_s: float | None = None
        signal.signal(signal.SIGTERM, self._hear)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    def _hear(self, _number: int, _frame: object) -> None:
        self._told_to_end = True

    def run(self) -> None:
        """Until told to end, until the stack cannot come up, or until the folder is gone or another's."""
        if not self._deed.holds:
            return
        self._write()
        self._scratch.mkdir(mode=0o700)  # known by now, so whoever kills us does not make it an orphan
        while not self._told_to_end and self._ended is None and self._deed.holds:
            self._step()
            self._look_now_and_then()
            self._write()
            clock.sleep_s(_LOOK_S)
        self._look_for_shared()
        self._ended = self._ended or TAKEN_DOWN
        self._write()  # who measures it shall know why its services go
        self._end_all()
        shared_memory.remove(self._shared)
        for scratch in (str(self._scratch), *self._elsewhere):
            shutil.rmtree(scratch, ignore_errors=True)
        self._write()

    def fail(self, e: Exception) -> None:
        """Its last word; the keepers end what is theirs once we are gone."""
        self._ended = f"its supervisor has failed: {one_line(str(e) or type(e).__name__)}"
        with suppress(Exception):  # the fault that is told is the first
            self._write()

    def _step(self) -> None:
        supervision = self._supervision
        self._hear_orders()
        for name in [name for name, kept in self._kept.items() if kept.has_ended(clock.steady_s())]:
            self._bury(name)
        for name in supervision.overdue(now_s := clock.steady_s()):
            if (kept := self._kept[name]).dismissed is None:
                kept.dismiss(kept.why_late(), now_s)
        for process in supervision.to_start(clock.steady_s()):
            self._start(process)
        for name, kept in list(self._kept.items()):
            kept.look_for_leader(now_s := clock.steady_s())
            if kept.gone_s is not None:
                if now_s - kept.gone_s > _LINGERS_S:
                    supervision.left(name, kept.gone_s)
            elif self._is_awaited(name) and kept.health.is_answered():
                self._greet(name, kept)
        if failed := supervision.never_up:
            self._ended = f"{failed.process.name} {failed.reason}"

    def _hear_orders(self) -> None:
        """Services that somebody wants ended and started again."""
        now_s, supervision = clock.steady_s(), self._supervision
        for name in (ordered(self._folder) & supervision.units.keys()) - self._heard:
            self._heard.add(name)
            if supervision.restart(name, now_s):
                self._kept[name].let_go(now_s)

    def _is_awaited(self, name: str) -> bool:
        return self._supervision.units[name].phase is Phase.STARTING and self._kept[name].dismissed is None

    def _greet(self, name: str, kept: Kept) -> None:
        """It is ready, if it was itself that has answered."""
        port = kept.process.health_port
        stranger = port and stranger_on(port, partial(self._is_of, kept.keeper.pid))
        if stranger == NOBODY:
            kept.ask_anew()
            return
        if stranger:
            kept.dismiss(f"does not answer at port {port}: {stranger} has it.", clock.steady_s())
            return
        self._supervision.healthy(name, clock.steady_s())
        self._look_for_shared()

    def _is_of(self, keeper: int, pid: int) -> bool:
        """Whether it has come of the keeper, or was started for it elsewhere, as by Slurm, with its environment."""
        if has_come_of(pid, keeper):
            return True
        return is_marked(pid, MARK, self._mark) and not has_come_of(pid, os.getpid())

    def _look_now_and_then(self) -> None:
        """Logs keep their bound; who is killed before he is ready has shared memory, too."""
        if (now_s := clock.steady_s()) - self._looked_s > _LOOK_AT_FILES_S:
            self._looked_s = now_s
            self._is_told = has_state(self._folder)  # somebody may have removed it
            for kept in self._kept.values():
                cut(kept.log)
            if any(unit.phase is Phase.STARTING for unit in self._supervision.units.values()):
                self._look_for_shared()

    def _look_for_shared(self) -> None:
        """By mark and by session: who gives himself another title loses the mark."""
        leaders = [kept.leader for kept in self._kept.values() if kept.leader]
        found = [*marked(MARK, self._mark), *(one for leader in leaders for one in in_session(leader))]
        self._shared |= shared_memory.shared_by({one.pid for one in found}) - self._others_shared

    def _start(self, process: Process) -> None:
        try:
            self._kept[process.name] = begun(process, self._folder, self._environment(process))
        except OSError as e:
            where = f"{e.filename}: " if e.filename else ""
            self._supervision.ended(process.name, clock.steady_s(), f"cannot be started: {where}{e.strerror}.")
        except (ValueError, WithstandError) as e:  # the first: a NUL, or a name that no variable can have
            self._supervision.ended(process.name, clock.steady_s(), f"cannot be started: {e}")
        else:
            self._supervision.started(process.name, clock.steady_s())

    def _environment(self, process: Process) -> dict[str, str]:
        return os.environ | {"TMPDIR": str(self._scratch)} | environment(process.env) | {MARK: self._mark}

    def _bury(self, name: str) -> None:
        """Its keeper is gone: what that has left is ended, wherever it went."""
        kept, phase = self._kept.pop(name), self._supervision.units[name].phase
        asked_for, reason = phase is Phase.ENDING, kept.end(was_ready=phase is not Phase.STARTING)
        note(kept.log, f"{name} has ended, for it was told to start again" if asked_for else f"{name} {reason}")
        kept.close()
        self._look_for_shared()  # before the last of it is gone
        self._end_strays(kept)
        if kept.gone_s is not None:
            self._supervision.left(name, kept.gone_s)
        self._supervision.ended(name, clock.steady_s(), reason, kept.keeper.poll())

    def _end_strays(self, kept: Kept) -> None:
        """Who loses his parent by that is the next to be ended; none of them waits for us to take leave of him."""
        while strays := self._strays(kept):
            if end(strays, 0.0):
                break
        reap(besides=self._keepers)

    @property
    def _keepers(self) -> set[int]:
        return {kept.keeper.pid for kept in self._kept.values()}

    def _strays(self, kept: Kept) -> list[Identity]:
        """Of its session, and what has become our child without being a keeper, or a stack that it has brought up."""
        others = [one for one in children_of(os.getpid()) if one.pid not in self._keepers]
        orphans = [one for one in others if not is_supervisor(one.pid)]
        return orphans + (in_session(kept.leader) if kept.leader else [])

    def _end_all(self) -> None:
        """Those first that nobody needs any more."""
        while self._kept:
            for name in self._supervision.may_end(self._kept):
                self._see_off(name, self._kept[name])
            self._write()
            clock.sleep_s(_LOOK_S)

    def _see_off(self, name: str, kept: Kept) -> None:
        kept.let_go(now_s := clock.steady_s())
        if kept.has_ended(now_s):
            del self._kept[name]
            kept.close()
            self._end_strays(kept)
            self._supervision.units[name].to(Phase.ENDED, now_s)

    def _write(self) -> None:
        if not self._deed.holds:  # what stands there is another's, and not to be told of us
            return
        me = identity_of(os.getpid())
        assert me is not None
        units = tuple(self._told(unit) for unit in self._supervision.units.values())
        state = StackState(
            supervisor=me,
            mark=self._mark,
            boot=self._boot,
            host=gethostname(),
            pid_space=pid_space(),
            began_s=self._began_s,
            scratch=str(self._scratch),
            shared=tuple(sorted(self._shared)),
            units=units,
            ended=self._ended,
        )
        if (state != self._written or not self._is_told) and not self._keep(state):
            return
        if self._heard:
            heard(self._folder, self._heard)
            self._heard &= ordered(self._folder)  # what cannot be taken away is no new order

    def _keep(self, state: StackState) -> bool:
        """Whether it is written down."""
        try:
            write_state(self._folder, state)
        except WithstandError as e:
            if self._written is None:
                raise
            self._bear(e)
            return False
        self._written, self._is_told, self._unwritten_s = state, True, None
        self._has_told_ready = self._has_told_ready or self._supervision.all_ready
        return True

    def _bear(self, e: WithstandError) -> None:
        """It is tried again: services do not end for a disk that is full; but who waits for them would never hear."""
        now_s = clock.steady_s()
        self._unwritten_s = self._unwritten_s or now_s
        if not self._has_told_ready and now_s - self._unwritten_s > _PATIENCE_S:
            self._ended = self._ended or str(e).partition("; ")[0]

    def _told(self, unit: Unit) -> UnitState:
        kept = self._kept.get(unit.process.name)
        return UnitState(
            name=unit.process.name,
            phase=unit.phase,
            since_s=unit.since_s,
            keeper=kept.identity if kept else None,
            leader=kept.leader if kept else None,
            ready_after_s=unit.ready_after_s,
            restarts=unit.restarts,
            reason=unit.reason,
            exit_code=unit.exit_code,
            absences=tuple(unit.absences),
            vain_starts=unit.vain_starts,
        )


def main() -> None:
    """Supervise."""
    folder = Path(sys.argv[1])
    deed = Deed(folder)
    if (blueprint := deed.blueprint()) is None:
        sys.exit("No blueprint was given.")
    if os.fork():  # whoever brought the stack up is not to be our parent: it may live long, or end at once
        os._exit(0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    supervisor = Supervisor(folder, blueprint, deed)
    try:
        supervisor.run()
    except Exception as e:
        supervisor.fail(e)
        raise


if __name__ == "__main__":
    main()
