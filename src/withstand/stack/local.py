"""A stack on this machine: brought up, and held while somebody measures it. Its folder is the only thing that lasts."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from withstand import clock
from withstand.errors import EngineError, StorageError, UsageError, WithstandError
from withstand.files import spelled
from withstand.processes.identity import Identity, end, identity_of, tell_to_end
from withstand.processes.interrupts import deferred
from withstand.spec.stack import Stack
from withstand.stack.beforehand import check_machine, check_programs
from withstand.stack.blueprint import Blueprint, Place
from withstand.stack.composed import (
    AGENT,
    GATEWAY,
    composed,
    programs_of,
    service_names,
    told_of,
    wanted_small,
    welcome_programs_of,
)
from withstand.stack.health import dead, is_of_another_file, is_up_already, not_whole
from withstand.stack.launching import supervise
from withstand.stack.machine import usable_cores
from withstand.stack.patience import why_too_long
from withstand.stack.ports import HOST, free_port, listener_on
from withstand.stack.programs import found_programs
from withstand.stack.progress import Progress
from withstand.stack.ray import RAY
from withstand.stack.resting import with_resting
from withstand.stack.secrets import environment
from withstand.stack.small import foreseen, make_ready
from withstand.stack.standing import (
    Standing,
    check_readable,
    claimed_ports,
    standing_of,
    supervisors_end,
    supervisors_of,
)
from withstand.stack.state import (
    TAKEN_DOWN,
    StackState,
    UnitState,
    read_state,
    remove_folder,
    stacks_folder,
    write_blueprint,
    write_holder,
)
from withstand.stack.supervision import Phase
from withstand.stack.taking_down import stop_s, take_down
from withstand.stack.turn import turn_in
from withstand.stack.unwritten import unwritten

_LOOK_S = 0.05
_TELL_S = 5.0
"""At least so often, also where nothing is new: who hears it looks whether its supervisor is held up."""
_WAITING = "Waiting for another stack that is being prepared"
_STRAY_S = 60.0
"""What a supervisor of nobody's may take to end its services; once it is killed their keepers do."""


def bring_up(
    stack: Stack,
    progress: Progress,
    tell: Callable[[StackState], None],
    look: Callable[[Blueprint], object] = bool,
    file: Path | None = None,
) -> Standing:
    """All services, healthy; ``tell`` hears of each step and, at times, of none. If it fails, only logs are left.

    ``look`` sees what is to be started, and may raise; ``file`` is the stack's.

    Raises:
        UsageError: it is up already, or something in it cannot be; our gateway or agent refuses what is said of it.
        EngineError: a port is taken, or a service does not come up.
    """
    claim = _Claim(stack, file)
    with claim, claim:
        standing = claim.bring_up(progress, tell, look)
        claim.let_stand()
    return standing


class _IsUpError(UsageError):
    """One of its name is up by now, for anybody."""


class _Claim:
    """A stack's name that is ours from some moment on; from then on we answer for what runs under it.

    Leave it twice: who is interrupted often does it twice at once (`timeout` signals a process and its group), and the
    first time may be cut short.
    """

    def __init__(self, stack: Stack, file: Path | None, holder: Identity | None = None) -> None:
        self._stack = stack
        self._file = file and spelled(file.resolve())
        self._holder = holder
        self._folder = stacks_folder() / stack.name
        self._blueprint: Blueprint | None = None
        self._supervisor: Identity | None = None
        self._standing: Standing | None = None
        self._is_over = False

    def bring_up(
        self, progress: Progress, tell: Callable[[StackState], None], look: Callable[[Blueprint], object]
    ) -> Standing:
        """Who comes later finds the holder there before anything else."""
        with _alone(progress):
            _clear_away(self._folder, self._stack)
            blueprint = replace(planned(self._stack), file=self._file)
            look(blueprint)
            make_ready(wanted_small(self._stack), progress)
            self._blueprint = blueprint
            _write(self._folder, blueprint, self._holder)
            with deferred() as interrupts:
                self._supervisor = supervise(self._folder, interrupts)
        self._standing = _wait_until_up(self._folder, blueprint, self._supervisor, tell)
        return self._standing

    def let_stand(self) -> None:
        """It is nobody's to take down any more."""
        self._is_over = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """What was started ends. Of a stack that has come up nothing is left, of another its logs."""
        if self._is_over or self._blueprint is None or self._supervisor is None:
            return
        with deferred():
            tell_to_end(self._supervisor)
        try:
            if self._standing:
                take_down(self._standing)
            else:
                end([self._supervisor], stop_s(self._blueprint))
        except WithstandError:  # it would fail again
            self._is_over = True
            raise
        self._is_over = True


@contextmanager
def standing_for(
    stack: Stack,
    progress: Progress,
    tell: Callable[[StackState], None],
    look: Callable[[Blueprint], object],
    file: Path | None = None,
) -> Iterator[Standing]:
    """The stack, up inside the block; taken down after it, unless it was up before. One that comes up is waited for.

    Raises:
        WithstandError: as ``bring_up``; or one of its name is up and another one, or somebody else's who takes it down.
    """
    claim, standing = _Claim(stack, file, identity_of(os.getpid())), None
    with claim, claim:
        while standing is None:
            with suppress(_IsUpError):
                standing = _lent(stack, tell) or claim.bring_up(progress, tell, look)
        with _lasting(standing):
            yield standing


def _lent(stack: Stack, tell: Callable[[StackState], None]) -> Standing | None:
    """One that stays up for whoever measures it; None = there is none."""
    found = standing_of(stack.name)
    if not (found and found.is_up):
        return None
    if found.held:
        raise UsageError(f"{found.held}; wait for that, or bring it up for several by `withstand up`.")
    if other := is_of_another_file(found.blueprint, stack):
        raise UsageError(other)
    return _wait_until_up(found.folder, found.blueprint, found.state.supervisor, tell)


@contextmanager
def _lasting(standing: Standing) -> Iterator[None]:
    """Who measures one that is taken away hears of that, and not of what came of it.

    Raises:
        EngineError: it did not last.
    """
    try:
        yield
    except WithstandError:
        _check_lasts(standing)
        raise
    _check_lasts(standing)


def _check_lasts(standing: Standing) -> None:
    now = read_state(standing.folder)
    is_there = now is not None and now.mark == standing.state.mark
    if why := _end_of(standing.folder, now) if now and is_there else TAKEN_DOWN:
        raise EngineError(
            f"While the stack {standing.name!r} was measured, {why.rstrip('.')}; what was measured before is kept."
        )


def _end_of(folder: Path, state: StackState) -> str | None:
    """Why nobody minds it any more; None = somebody does."""
    if state.ended is None and not state.supervisor.is_alive:
        now = read_state(folder)  # with its last word, said since; or gone
        is_there = now is not None and now.mark == state.mark
        return (now.ended or supervisors_end(folder)) if now and is_there else TAKEN_DOWN
    return state.ended


@contextmanager
def _alone(progress: Progress) -> Iterator[None]:
    """One process at a time brings a stack up."""
    lock = turn_in(stacks_folder(), progress, _WAITING)
    try:
        yield
    finally:
        os.close(lock)


def _clear_away(folder: Path, stack: Stack) -> None:
    """What an earlier one of the name has left."""
    name = stack.name
    standing = standing_of(name)
    if standing and standing.is_up:
        if standing.held:
            raise UsageError(f"{standing.held}; wait for that, or give this one another name.")
        raise _IsUpError(is_up_already(standing.blueprint, stack))
    left = take_down(standing) if standing else []
    check_readable(name)
    # Another one's folder was removed, or it had not told of itself.
    if left := left or end(supervisors_of(folder), _STRAY_S):
        numbers = ", ".join(str(one.pid) for one in left)
        raise EngineError(f"Processes of an earlier stack {name!r} cannot be ended: {numbers}; end them first.")
    with suppress(OSError):  # there is none, or who writes there says why
        remove_folder(folder)


def planned(stack: Stack) -> Blueprint:
    """What would be started, on ports that are free now; nothing is made for it yet.

    Raises:
        WithstandError: something in it cannot be.
    """
    check_machine(stack)
    programs = found_programs(programs_of(stack), welcome_programs_of(stack))
    ports, side_ports = _ports(stack)
    small = foreseen(wanted_small(stack))
    place = Place(
        folder=stacks_folder() / stack.name,
        python=sys.executable,
        ports=ports,
        side_ports=side_ports,
        threads=usable_cores(),
        small_model=small.path if small else None,
        small_folder=small.folder if small else None,
        small_model_name=small.name if small else "",
        programs=programs,
        is_root=os.geteuid() == 0,
    )
    blueprint = replace(with_resting(composed(stack, place), place), ports=(*ports.values(), *side_ports.values()))
    for process in blueprint.processes:
        environment(process.env, process.name)  # said now, and not by a log
    check_programs(blueprint)
    return blueprint


def _ports(stack: Stack) -> tuple[dict[str, int], dict[str, int]]:
    """Of all services, and of engines that hand caches over the second; no two alike."""
    claimed = claimed_ports()
    wanted = {name: _wanted_port(stack, name, claimed) for name in service_names(stack)}
    ports = {name: port for name, port in wanted.items() if port is not None}
    for name in wanted.keys() - ports.keys():
        ports[name] = free_port(besides={*ports.values(), *claimed})
    side_ports: dict[str, int] = {}
    for name in (name for name, told in stack.engines.items() if told.role):
        side_ports[name] = free_port(besides={*ports.values(), *side_ports.values(), *claimed})
    return {name: ports[name] for name in wanted}, side_ports


def _wanted_port(stack: Stack, name: str, claimed: Mapping[int, str]) -> int | None:
    if name == RAY and stack.ray.port and stack.ray.address != "local":
        return stack.ray.port  # Serve on that cluster may listen there already
    served = told_of(stack, name)
    wanted = stack.ray.port if name == RAY else served.port if served else None
    if wanted is not None and (owner := listener_on(wanted)):
        raise EngineError(f"Port {wanted} of {HOST}, which {name} wants, is taken by {owner}; choose another one.")
    if wanted is not None and (other := claimed.get(wanted)):
        raise EngineError(
            f"Port {wanted} of {HOST}, which {name} wants, is of the stack {other!r}; choose another one."
        )
    return None if wanted is None else free_port(wanted)


def _write(folder: Path, blueprint: Blueprint, holder: Identity | None) -> None:
    """All that stands there before anything is started, or nothing; a folder that is there is another's."""
    try:
        (folder / "logs").mkdir(parents=True)
    except OSError as e:
        with suppress(OSError):  # of our own making it is empty
            folder.rmdir()
        raise unwritten(folder, e) from None
    try:
        _write_files(folder, blueprint)
        write_blueprint(folder, blueprint)
        if holder:
            write_holder(folder, holder)
    except StorageError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _write_files(folder: Path, blueprint: Blueprint) -> None:
    try:
        folder.chmod(0o700)
        for process in blueprint.processes:
            for path, text in process.files.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text, "utf-8")
    except OSError as e:
        raise unwritten(folder, e) from None


def _taken_down(blueprint: Blueprint) -> EngineError:
    return EngineError(f"The stack {blueprint.name!r} was taken down while it came up.")


def _wait_until_up(
    folder: Path, blueprint: Blueprint, supervisor: Identity, tell: Callable[[StackState], None]
) -> Standing:
    told: StackState | None = None
    told_ns = heard_ns = clock.now_ns()
    while True:
        state = read_state(folder)
        if state is None or state.supervisor != supervisor:
            raise _taken_down(blueprint)
        if state != told or clock.now_ns() - heard_ns > _TELL_S * 1e9:
            tell(state)
            heard_ns = clock.now_ns()
            told, told_ns = state, told_ns if state == told else heard_ns
        if state.ended is None and all(unit.phase is Phase.READY for unit in state.units):
            return Standing(name=blueprint.name, folder=folder, blueprint=blueprint, state=state)
        if (lost := dead(state)) and state.supervisor.is_alive:
            raise EngineError(not_whole(blueprint.name, lost))
        failed = next((unit for unit in state.units if unit.phase is Phase.FAILED), None)
        said = f"{failed.name} {failed.reason or ''}".strip() if failed else ""
        late = _why_too_long(blueprint, state, (clock.now_ns() - told_ns) / 1e9)
        if why := state.ended or said or _end_of(folder, state) or late:
            if why == TAKEN_DOWN:
                raise _taken_down(blueprint)
            why = why.rstrip(".")
            what = f"The stack {blueprint.name!r} does not come up: {why}. Its logs: {folder / 'logs'}"
            raise UsageError(what) if failed and _is_mistaken(failed, blueprint) else EngineError(what)
        clock.sleep_s(_LOOK_S)


def _why_too_long(blueprint: Blueprint, state: StackState, silent_s: float) -> str | None:
    """Of one that has told nothing for so long; each of its services is told of again within its time."""
    found = (why_too_long(blueprint, state, unit, silent_s) for unit in state.units)
    why = next((why for why in found if why), None)
    return why and f"its supervisor, process {state.supervisor.pid}, tells nothing new, and {why}"


def _is_mistaken(unit: UnitState, blueprint: Blueprint) -> bool:
    """Whether a program of ours has refused what the file says of it."""
    ours = {process.name for process in blueprint.processes if process.kind in {GATEWAY, AGENT}}
    return unit.name in ours and unit.exit_code == UsageError.exit_code
