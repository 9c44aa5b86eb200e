"""A stack on this machine: brought up, looked at, taken down. The folder of its state is the only thing that lasts."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from withstand import clock
from withstand.errors import EngineError, UsageError
from withstand.files import storage_error
from withstand.processes import shared_memory
from withstand.processes.identity import Identity, boot, end, identity_of, in_session, marked
from withstand.processes.words import said_reason, tail
from withstand.spec.stack import Stack
from withstand.stack.beforehand import check_machine, check_programs
from withstand.stack.blueprint import Blueprint, Place, Process
from withstand.stack.composed import (
    AGENT,
    GATEWAY,
    SUPERVISOR,
    composed,
    programs_of,
    service_names,
    told_of,
    wanted_small,
    welcome_programs_of,
)
from withstand.stack.health import dead, is_of_another_file, is_up_already, not_whole
from withstand.stack.hf_model import hf_folder
from withstand.stack.machine import usable_cores
from withstand.stack.model import ready_model
from withstand.stack.ports import HOST, free_port, listener_on
from withstand.stack.programs import found_programs
from withstand.stack.progress import Progress
from withstand.stack.ray import RAY
from withstand.stack.resting import with_resting
from withstand.stack.secrets import environment
from withstand.stack.service import last_words
from withstand.stack.state import (
    MARK,
    StackState,
    UnitState,
    has_state,
    log_of,
    read_blueprint,
    read_holder,
    read_state,
    stacks_folder,
    write_blueprint,
    write_holder,
)
from withstand.stack.supervision import Phase
from withstand.stack.turn import wait_for_turn

_LOOK_S = 0.05
_WAITING = "Waiting for another stack that is being prepared"
_BORN_S = 60.0
"""What a supervisor may take to say who it is."""
_BORN_LATE_S = 3.0
"""The same, where nobody wants it any more."""
_MORE_S = 10.0
"""What a supervisor may take besides its services' own time to end."""
_UNDO_S = 60.0
"""What is left elsewhere is reached within this, besides the service's own time to end."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A stack as it is now. Its ``supervisor`` is gone where it was killed: then it can only be taken down."""

    name: str
    folder: Path
    blueprint: Blueprint
    state: StackState

    @property
    def is_up(self) -> bool:
        """Whether somebody minds it."""
        return self.state.ended is None and self.state.supervisor.is_alive


def bring_up(
    stack: Stack, progress: Progress, tell: Callable[[StackState], None], look: Callable[[Blueprint], object] = bool
) -> Standing:
    """All services, healthy; ``tell`` hears of each step. Whatever goes wrong, nothing is left but the logs.

    ``look`` sees what is to be started, and may raise.

    Raises:
        UsageError: it is up already, or something in it cannot be; our gateway or agent refuses what is said of it.
        EngineError: a port is taken, or a service does not come up.
    """
    folder = stacks_folder() / stack.name
    with _alone(progress):
        _clear_away(folder, stack)
        blueprint = planned(stack, progress)
        look(blueprint)
        _write(folder, blueprint)
        supervisor = _supervise(folder)
    try:
        return _wait_until_up(folder, blueprint, tell)
    except BaseException:
        end([supervisor], _stop_s(blueprint))
        raise


@contextmanager
def standing_for(
    stack: Stack, progress: Progress, tell: Callable[[StackState], None], look: Callable[[Blueprint], object]
) -> Iterator[Standing]:
    """The stack, up inside the block; taken down after it, unless it was up before. One that comes up is waited for.

    Raises:
        WithstandError: as ``bring_up``; or one of its name is up and another one, or somebody else's who takes it down.
    """
    found = standing_of(stack.name)
    if found and found.is_up:
        if other := is_of_another_file(found.blueprint, stack):
            raise UsageError(other)
        found = _wait_until_up(found.folder, found.blueprint, tell)
        if (holder := read_holder(found.folder)) and holder.is_alive:
            raise UsageError(
                f"The stack {stack.name!r} is up for another run alone (process {holder.pid}), which takes it down "
                "when it ends; wait for that, or bring it up for several by `withstand up`."
            )
        yield found
        return
    standing = bring_up(stack, progress, tell, look)
    if me := identity_of(os.getpid()):
        write_holder(standing.folder, me)
    try:
        yield standing
    finally:
        take_down(standing)


def take_down(standing: Standing) -> list[Identity]:
    """Nothing of it is left; what could not be ended is returned, and its folder kept.

    Raises:
        EngineError: something that it has left elsewhere could not be taken away; its folder is kept.
    """
    end([standing.state.supervisor], _stop_s(standing.blueprint))
    state = read_state(standing.folder) or standing.state
    left = end(_leftovers(state), _MORE_S)
    if not left:
        for process in standing.blueprint.processes:
            _undo(process, standing.folder)
        for scratch in standing.blueprint.scratch:
            shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(standing.folder, ignore_errors=True)
        if state.scratch:
            shutil.rmtree(state.scratch, ignore_errors=True)
        shared_memory.remove(state.shared)
        with suppress(OSError):  # others may be up
            standing.folder.parent.rmdir()
    return left


def _undo(process: Process, folder: Path) -> None:
    if process.undo is None or not (folder / process.undo.trace).exists():
        return
    log_file, within_s = log_of(folder, process.name), process.upkeep.stop_s + _UNDO_S
    with log_file.open("ab") as log:
        start = log.tell()
        try:
            code = subprocess.run(  # noqa: S603  argv is built by us, without a shell
                process.undo.argv,
                env=os.environ | environment(process.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=within_s,
            ).returncode
        except subprocess.TimeoutExpired:
            raise EngineError(
                f"What {process.name} has left elsewhere is not taken away within {within_s:g} s; try it again."
            ) from None
    if code:
        words = last_words(log_file, start, code, process.reason)
        raise EngineError(f"What {process.name} has left elsewhere is not taken away{words}")


def standings() -> list[Standing]:
    """Of all stacks of this user, by name."""
    found = (standing_of(folder.name) for folder in sorted(stacks_folder().glob("*/")))
    return [standing for standing in found if standing is not None]


def standing_of(name: str) -> Standing | None:
    """None = there is no such stack."""
    folder = stacks_folder() / name
    blueprint, state = read_blueprint(folder), read_state(folder)
    return Standing(name=name, folder=folder, blueprint=blueprint, state=state) if blueprint and state else None


def check_readable(name: str | None = None) -> None:
    """Of one stack, or of all.

    Raises:
        EngineError: what stands of one cannot be read.
    """
    for folder in sorted(stacks_folder().glob("*/")):
        if name in {None, folder.name} and has_state(folder) and standing_of(folder.name) is None:
            raise EngineError(
                f"What {folder} tells of a stack cannot be read, as where another version of withstand wrote it. End "
                "the stack's processes, if there are any, and remove the folder."
            )


@contextmanager
def _alone(progress: Progress) -> Iterator[None]:
    """One process at a time brings a stack up."""
    folder = stacks_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY)
    except OSError as e:
        raise storage_error(folder, e) from None
    try:
        wait_for_turn(lock, progress, _WAITING)
        yield
    finally:
        os.close(lock)


def _clear_away(folder: Path, stack: Stack) -> None:
    """What an earlier one of the name has left."""
    name = stack.name
    standing = standing_of(name)
    if standing and standing.is_up:
        raise UsageError(is_up_already(standing.blueprint, stack))
    if standing and (left := take_down(standing)):
        numbers = ", ".join(str(one.pid) for one in left)
        raise EngineError(f"Processes of an earlier stack {name!r} cannot be ended: {numbers}; end them first.")
    check_readable(name)
    shutil.rmtree(folder, ignore_errors=True)


def planned(stack: Stack, progress: Progress) -> Blueprint:
    """What would be started, on ports that are free now.

    Raises:
        WithstandError: something in it cannot be.
    """
    check_machine(stack)
    programs = found_programs(programs_of(stack), welcome_programs_of(stack))
    ports = _ports(stack)
    side_ports: dict[str, int] = {}
    for name in (name for name, told in stack.engines.items() if told.role):
        side_ports[name] = free_port(besides={*ports.values(), *side_ports.values()})
    wanted = wanted_small(stack)
    model = ready_model(progress) if wanted else None
    small_folder = hf_folder(model, progress) if model and "folder" in wanted else None
    place = Place(
        folder=stacks_folder() / stack.name,
        python=sys.executable,
        ports=ports,
        side_ports=side_ports,
        threads=usable_cores(),
        small_model=model.path if model else None,
        small_folder=small_folder,
        small_model_name=model.name if model else "",
        programs=programs,
        is_root=os.geteuid() == 0,
    )
    blueprint = with_resting(composed(stack, place), place)
    for process in blueprint.processes:
        environment(process.env)  # said now, and not by a log
    check_programs(blueprint)
    return blueprint


def _ports(stack: Stack) -> dict[str, int]:
    """Of all services, no two alike."""
    wanted = {name: _wanted_port(stack, name) for name in service_names(stack)}
    ports = {name: port for name, port in wanted.items() if port is not None}
    for name in wanted.keys() - ports.keys():
        ports[name] = free_port(besides=ports.values())
    return {name: ports[name] for name in wanted}


def _wanted_port(stack: Stack, name: str) -> int | None:
    if name == RAY and stack.ray.port and stack.ray.address != "local":
        return stack.ray.port  # Serve on that cluster may listen there already
    served = told_of(stack, name)
    wanted = stack.ray.port if name == RAY else served.port if served else None
    if wanted is not None and (owner := listener_on(wanted)):
        raise EngineError(f"Port {wanted} of {HOST}, which {name} wants, is taken by {owner}; choose another one.")
    return None if wanted is None else free_port(wanted)


def _write(folder: Path, blueprint: Blueprint) -> None:
    try:
        (folder / "logs").mkdir(parents=True)
        folder.chmod(0o700)
        for process in blueprint.processes:
            for path, text in process.files.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text, "utf-8")
    except OSError as e:
        raise storage_error(folder, e) from None
    write_blueprint(folder, blueprint)


def _supervise(folder: Path) -> Identity:
    """Start a supervisor, which belongs to no terminal and is nobody's child."""
    log_file = log_of(folder, SUPERVISOR)
    try:
        _launch(folder, log_file)
        return _announced(folder, log_file)
    except KeyboardInterrupt:  # it may have been started all the same
        with suppress(EngineError):
            end([_announced(folder, log_file, _BORN_LATE_S)], _MORE_S)
        raise


def _launch(folder: Path, log_file: Path) -> None:
    with log_file.open("ab") as log:
        started = subprocess.run(  # noqa: S603  our own module
            [sys.executable, "-P", "-m", "withstand.stack.supervisor", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            check=False,
        )
    if started.returncode:
        raise _unborn(log_file)


def _announced(folder: Path, log_file: Path, within_s: float = _BORN_S) -> Identity:
    """As its first state says who it is."""
    give_up_ns = clock.now_ns() + int(within_s * 1e9)
    while clock.now_ns() < give_up_ns:
        if state := read_state(folder):
            return state.supervisor
        clock.sleep_s(_LOOK_S)
    raise _unborn(log_file)


def _unborn(log_file: Path) -> EngineError:
    return EngineError(f"The stack's supervisor does not start, perhaps for want of room on the disk; see {log_file}.")


def _wait_until_up(folder: Path, blueprint: Blueprint, tell: Callable[[StackState], None]) -> Standing:
    told: StackState | None = None
    while True:
        state = read_state(folder)
        if state is None:
            raise EngineError(f"The stack {blueprint.name!r} was taken down while it came up.")
        if state != told:
            tell(state)
            told = state
        if state.ended is None and all(unit.phase is Phase.READY for unit in state.units):
            return Standing(name=blueprint.name, folder=folder, blueprint=blueprint, state=state)
        if (lost := dead(state)) and state.supervisor.is_alive:
            raise EngineError(not_whole(blueprint.name, lost))
        failed = next((unit for unit in state.units if unit.phase is Phase.FAILED), None)
        if state.ended is not None or failed or not state.supervisor.is_alive:
            said = f"{failed.name} {failed.reason or ''}".strip() if failed else ""
            why = (state.ended or said or _supervisors_end(folder)).rstrip(".")
            what = f"The stack {blueprint.name!r} does not come up: {why}. Its logs: {folder / 'logs'}"
            raise UsageError(what) if failed and _is_mistaken(failed, blueprint) else EngineError(what)
        clock.sleep_s(_LOOK_S)


def _supervisors_end(folder: Path) -> str:
    """It writes nothing but a fault of its own; who was killed has written nothing."""
    said = said_reason(tail(log_of(folder, SUPERVISOR)), None)
    return f"its supervisor has failed: {said}" if said else "its supervisor was killed"


def _is_mistaken(unit: UnitState, blueprint: Blueprint) -> bool:
    """Whether a program of ours has refused what the file says of it."""
    ours = {process.name for process in blueprint.processes if process.kind in {GATEWAY, AGENT}}
    return unit.name in ours and unit.exit_code == UsageError.exit_code


def _stop_s(blueprint: Blueprint) -> float:
    """The most that its supervisor may take to end all."""
    return sum(process.upkeep.stop_s for process in blueprint.processes) + _MORE_S


def _leftovers(state: StackState) -> list[Identity]:
    """All that its services may have left, by what was recorded of them; nothing outlives the machine's own end."""
    if state.boot and state.boot != boot():
        return []
    found = marked(MARK, state.mark)
    for unit in state.units:
        found += [unit.keeper] if unit.keeper else []
        found += in_session(unit.leader) if unit.leader else []
    return found
