"""The end of a stack, whatever became of its supervisor: no process of it is left, no file, and nothing elsewhere."""

import os
import shutil
import subprocess
from pathlib import Path

from withstand.errors import EngineError
from withstand.processes import KEEPER_S, shared_memory
from withstand.processes.identity import Identity, began_s, boot, end, has_come_of, identity_of, in_session, marked
from withstand.processes.interrupts import deferred
from withstand.processes.log import opened
from withstand.stack.blueprint import Blueprint, Process
from withstand.stack.secrets import environment
from withstand.stack.service import last_words
from withstand.stack.standing import Standing
from withstand.stack.state import MARK, StackState, log_of, read_state, remove_folder, told_s
from withstand.stack.turn import remove_unused

_MORE_S = 10.0
"""What a supervisor may take besides its services' own time to end."""
_UNDO_S = 60.0
"""What is left elsewhere is reached within this, besides the service's own time to end."""


def take_down(standing: Standing) -> list[Identity]:
    """Nothing of it is left; what could not be ended is returned, and its folder kept.

    Another one that is up under its name by now is left alone, with the folder that is its own.

    Raises:
        EngineError: it is another machine's; or something that it has left elsewhere could not be taken away. Its
            folder is kept. Or that alone is left, and cannot be removed.
    """
    standing.check_here()
    end([standing.state.supervisor], stop_s(standing.blueprint))
    state = read_state(standing.folder) or standing.state
    if state.mark != standing.state.mark:
        return []
    left = end(_leftovers(standing, state), _MORE_S)
    if not left and _marked_now(standing) in {None, standing.state.mark}:
        for process in standing.blueprint.processes:
            _undo(process, standing.folder)
        for scratch in standing.blueprint.scratch:
            shutil.rmtree(scratch, ignore_errors=True)
        if state.scratch:
            shutil.rmtree(state.scratch, ignore_errors=True)
        shared_memory.remove(state.shared)
        _remove(standing)
        remove_unused(standing.folder.parent)
    return left


def stop_s(blueprint: Blueprint) -> float:
    """The most that its supervisor may take to end all."""
    return sum(process.upkeep.stop_s + KEEPER_S for process in blueprint.processes) + _MORE_S


def _marked_now(standing: Standing) -> str | None:
    """Whose its folder is; None = nobody's: it is gone, or another one comes up there."""
    now = read_state(standing.folder)
    return now.mark if now else None


def _leftovers(standing: Standing, state: StackState) -> list[Identity]:
    """All that its services may have left, by what was recorded of them; nothing outlives the machine's own end.

    Who takes it down may have been started within it: neither he nor who waits for him is ended.
    """
    if state.boot and state.boot != boot():
        return []
    found = marked(MARK, state.mark)
    stop_s = {process.name: process.upkeep.stop_s for process in standing.blueprint.processes}
    for unit in state.units:
        found += [unit.keeper] if unit.keeper else []
        found += _left_of(unit.leader, told_s(standing.folder) + stop_s[unit.name]) if unit.leader else []
    return [one for one in found if not has_come_of(os.getpid(), one.pid)]


def _left_of(leader: Identity, until_s: float) -> list[Identity]:
    """Of its session; once it is gone, its number may be another's session: what has begun until then is its own."""
    found = in_session(leader)
    if identity_of(leader.pid) == leader:
        return found
    return [one for one in found if (began := began_s(one)) is not None and began <= until_s]


def _remove(standing: Standing) -> None:
    if _marked_now(standing) != standing.state.mark:
        return
    try:
        with deferred():
            remove_folder(standing.folder)
    except OSError as e:
        raise EngineError(
            f"All of the stack {standing.name!r} has ended, but {standing.folder} cannot be removed: "
            f"{e.strerror or e}. Once it can, withstand down {standing.name} removes it."
        ) from None


def _undo(process: Process, folder: Path) -> None:
    if process.undo is None or not (folder / process.undo.trace).exists():
        return
    log, within_s = opened(log_of(folder, process.name)), process.upkeep.stop_s + _UNDO_S
    try:
        start = os.fstat(log).st_size
        code = subprocess.run(  # noqa: S603  argv is built by us, without a shell
            process.undo.argv,
            env=os.environ | environment(process.env),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=within_s,
        ).returncode
        if code:
            words = last_words(log, start, code, process.reason)
            raise EngineError(f"What {process.name} has left elsewhere is not taken away{words}")
    except subprocess.TimeoutExpired:
        raise EngineError(
            f"What {process.name} has left elsewhere is not taken away within {within_s:g} s; try it again."
        ) from None
    finally:
        os.close(log)
