"""Which stacks there are, as their folders tell: up, ended, held by a run, or another machine's. It changes nothing."""

import os
from pathlib import Path
from secrets import token_hex
from socket import gethostname

import msgspec

from withstand.errors import EngineError
from withstand.files import discard, make_durable, unwritable
from withstand.processes.identity import (
    Identity,
    boot,
    has_come_of,
    is_marked,
    is_pid_spaces_other,
    pid_space,
    run_as,
    runs,
)
from withstand.processes.words import said_reason, tail
from withstand.stack.blueprint import Blueprint, Process
from withstand.stack.composed import GATEWAY, SUPERVISOR
from withstand.stack.ports import stranger_on
from withstand.stack.state import (
    MARK,
    StackState,
    UnitState,
    has_holder,
    has_state,
    log_of,
    read_blueprint,
    read_holder,
    read_state,
    stacks_folder,
)
from withstand.stack.supervision import Phase
from withstand.wire.reply import one_line

_SUPERVISOR = ("-P", "-m", "withstand.stack.supervisor")
"""What each of them is run by; keepers know it by that, too."""
_PROBE_BYTES = 64 << 10
_LOOKS = 3
"""One may go or come while its files are read."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A stack as it is now. Its ``supervisor`` is gone where it was killed: then it can only be taken down."""

    name: str
    folder: Path
    blueprint: Blueprint
    state: StackState

    @property
    def is_up(self) -> bool:
        """Whether somebody minds it."""
        return self.state.ended is None and not self.is_elsewhere and self.state.supervisor.is_alive

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is another machine's or container's, which has the same folder: numbers mean nothing here then."""
        if self.state.boot == boot():
            return _differ(self.state.pid_space, pid_space())
        return _differ(self.state.host, gethostname())

    @property
    def holder(self) -> Identity | None:
        """The run that it is up for alone, dead or alive; None = it stays up until it is taken down."""
        return read_holder(self.folder)

    @property
    def held(self) -> str | None:
        """A clause for who would use it besides that run, or end it; None = anybody may."""
        if self.is_elsewhere:
            return None
        if (holder := self.holder) is None and self.is_up and has_holder(self.folder):
            return f"Whether the stack {self.name!r} is up for a run alone cannot be read in {self.folder}"
        if holder is None or not holder.is_alive:
            return None
        return (
            f"The stack {self.name!r} is up for another run alone (process {holder.pid}), which takes it down when it "
            "ends"
        )

    @property
    def late(self) -> list[UnitState]:
        """Services that are told as ready though their process has ended."""
        told = self.state.units if self.is_up else ()
        return [unit for unit in told if unit.phase is Phase.READY and unit.leader and not unit.leader.is_alive]

    @property
    def outdated(self) -> list[UnitState]:
        """Of those, the ones of which all has ended: nothing newer is written down."""
        return [unit for unit in self.late if not (unit.keeper and unit.keeper.is_alive)]

    @property
    def why_outdated(self) -> str:
        """What keeps its supervisor from telling, and the cure."""
        alone = f"its supervisor, process {self.state.supervisor.pid}, does not write; withstand down {self.name}"
        return no_room(self.folder) or alone

    def check_here(self) -> None:
        """Of one that is to be changed.

        Raises:
            EngineError: it is not ours to change.
        """
        if self.is_elsewhere:
            raise EngineError(
                f"The stack {self.name!r} belongs to another machine or container (host {self.state.host!r}), which "
                f"has this folder too: take it down there. If that is no more, remove {self.folder}."
            )


def standings() -> list[Standing]:
    """Of all stacks of this user, by name."""
    found = (standing_of(folder.name) for folder in sorted(stacks_folder().glob("*/")))
    return [standing for standing in found if standing is not None]


def standing_of(name: str) -> Standing | None:
    """None = there is no such stack, or what its files tell does not fit together."""
    folder = stacks_folder() / name
    blueprint, state = read_blueprint(folder), read_state(folder)
    if blueprint is None or state is None or blueprint.name != name:
        return None
    if not {unit.name for unit in state.units} <= {process.name for process in blueprint.processes}:
        return None
    return Standing(name=name, folder=folder, blueprint=blueprint, state=state)


def claimed_ports() -> dict[int, str]:
    """Of stacks that are up or come up, where perhaps nobody listens now: port → the stack's name."""
    return {port: each.name for each in standings() if each.is_up for port in each.blueprint.ports}


def check_readable(name: str | None = None) -> None:
    """Of one stack, or of all.

    Raises:
        EngineError: what stands of one cannot be read, or the one is another user's.
    """
    for folder in sorted(stacks_folder().glob("*/")):
        if name == folder.name and _is_closed(folder):
            raise EngineError(
                f"The stack {name!r} is another user's, whose folder {folder} is closed to you: only he can take it "
                "down. Give yours another name, or name a folder of your own by WITHSTAND_STATE."
            )
        if name in {None, folder.name} and _is_unreadable(folder):
            found = ", ".join(str(one.pid) for one in supervisors_of(folder))
            cure = (
                f"End its supervisor, process {found}, and remove" if found else "No supervisor of it is seen; remove"
            )
            raise EngineError(
                f"What {one_line(str(folder), 4096)} tells of a stack cannot be read, as where another version of "
                f"withstand wrote it. {cure} the folder."
            )


def _is_closed(folder: Path) -> bool:
    try:
        os.scandir(folder).close()
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _is_unreadable(folder: Path) -> bool:
    return all(has_state(folder) and standing_of(folder.name) is None for _ in range(_LOOKS))


def supervisors_arguments(folder: Path) -> tuple[str, ...]:
    """All that stands behind the interpreter."""
    return (*_SUPERVISOR, str(folder))


def supervisors_of(folder: Path) -> list[Identity]:
    """All that were started for it and run, whatever it tells, which only Linux knows; a container's are not ours."""
    return [one for one in run_as(*supervisors_arguments(folder)) if not is_pid_spaces_other(one.pid)]


def is_at_rest(standing: Standing, process: Process) -> bool:
    """Of an engine that the gateway starts: whether nobody listens where it would, or somebody else."""
    keepers = [unit.keeper.pid for unit in standing.state.units if unit.name == GATEWAY and unit.keeper]

    def is_own(pid: int) -> bool:
        return is_marked(pid, MARK, standing.state.mark) or any(has_come_of(pid, keeper) for keeper in keepers)

    return stranger_on(process.port, is_own) is not None


def is_supervisor(pid: int) -> bool:
    """Whether it minds a stack, whichever."""
    return runs(pid, *_SUPERVISOR)


def supervisors_end(folder: Path) -> str:
    """Of one that has written no state about it: a fault of its own, or a disk that is full; else it was killed."""
    if said := one_line(said_reason(tail(log_of(folder, SUPERVISOR)), None)):
        return f"its supervisor has failed: {said}"
    return no_room(folder) or "its supervisor was killed"


def no_room(folder: Path) -> str | None:
    """Why nothing can be written there, and the cure. Tried, as nothing else tells whether a file of ours has room."""
    probe = folder / f".probe.{token_hex(4)}.tmp"  # several may try at once
    try:
        probe.write_bytes(bytes(_PROBE_BYTES))
        make_durable(probe)
    except OSError as e:
        return unwritable(folder, e)
    finally:
        discard(probe)
    return None


def _differ(there: str, here: str) -> bool:
    """What is not known does not differ."""
    return bool(there and here) and there != here
