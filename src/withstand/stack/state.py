"""What is known of a stack that is up: files, written by its supervisor, read by everybody, and outliving both."""

import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from withstand.errors import EngineError
from withstand.files import discard, named_by, write_atomically
from withstand.processes.identity import Identity
from withstand.processes.log import is_lost
from withstand.stack.blueprint import Blueprint
from withstand.stack.supervision import Absence, Phase
from withstand.stack.unwritten import unwritten

MARK = "WITHSTAND_STACK"
TAKEN_DOWN = "it was taken down"
"""Why a stack ended that had no reason of its own."""
_ENV = "WITHSTAND_STATE"
_STATE, _BLUEPRINT, _HOLDER = "state.json", "blueprint.json", "holder.json"


class UnitState(msgspec.Struct, frozen=True, kw_only=True):
    """One process. Times in seconds of the wall clock."""

    name: str
    phase: Phase
    since_s: float
    keeper: Identity | None = None
    leader: Identity | None = None
    """The process itself, which leads a session of its own."""
    ready_after_s: float | None = None
    restarts: int = 0
    reason: str = ""
    exit_code: int | None = None
    """Of its last end."""
    absences: tuple[Absence, ...] = ()
    """When it was away after it had been ready."""
    vain_starts: int = 0
    """Since it was ready."""


class StackState(msgspec.Struct, frozen=True, kw_only=True):
    """A stack."""

    supervisor: Identity
    mark: str
    """Stands in the environment of all that is the stack's, under ``MARK``."""
    boot: str = ""
    """Of the machine; empty = not known, as the next two."""
    host: str = ""
    pid_space: str = ""
    """In which its processes have their numbers."""
    began_s: float
    scratch: str | None = None
    """The folder for its services' temporary files, and gone with it. Its path is short: sockets lie there."""
    shared: tuple[str, ...] = ()
    """Files of shared memory that its services had mapped when they became ready, and that were not there before."""
    units: tuple[UnitState, ...] = ()
    ended: str | None = None
    """Why there is none any more; None = it is up, or coming up."""


def stacks_folder() -> Path:
    """Where stacks that are up keep what is theirs; it need not exist.

    Raises:
        EngineError: the user has no home.
        UsageError: it is named from a folder that is gone.
    """
    if named := named_by(_ENV):
        return named / "stacks"
    xdg = Path(os.environ.get("XDG_STATE_HOME", ""))
    if xdg.is_absolute():
        return xdg / "withstand" / "stacks"
    try:
        home = Path.home()
    except RuntimeError:
        raise EngineError(f"This user has no home folder for what runs; name a folder by {_ENV}.") from None
    return home / ("Library/Application Support" if sys.platform == "darwin" else ".local/state") / "withstand/stacks"


def log_of(folder: Path, name: str) -> Path:
    """All that a service says."""
    return folder / "logs" / f"{name}.log"


def scratch_name(mark: str) -> str:
    """Of the folder for temporary files of the stack that has this mark."""
    return f"withstand-{mark[:12]}"


def outside(env: Mapping[str, str]) -> dict[str, str]:
    """The same without what a service has of its stack: one that it brings up outlives it."""
    mark, temporary = env.get(MARK), Path(env.get("TMPDIR", ""))
    told = {name: value for name, value in env.items() if name != MARK}
    if mark and temporary.name == scratch_name(mark):
        told["TMPDIR"] = str(temporary.parent)
    return told


def write_state(folder: Path, state: StackState) -> None:
    """In one go."""
    _write(folder / _STATE, state)


def read_state(folder: Path) -> StackState | None:
    """None = there is none yet, or it cannot be read."""
    return _read(folder / _STATE, StackState)


def has_state(folder: Path) -> bool:
    """Whether there is one, readable or not."""
    return os.path.lexists(folder / _STATE)


def told_s(folder: Path) -> float:
    """When it was last written, by the wall clock; 0 = there is none."""
    try:
        return (folder / _STATE).stat().st_mtime
    except OSError:
        return 0.0


def write_holder(folder: Path, holder: Identity) -> None:
    """Who takes the stack down when he has done with it."""
    _write(folder / _HOLDER, holder)


def read_holder(folder: Path) -> Identity | None:
    """None = nobody: it stays up until it is taken down."""
    return _read(folder / _HOLDER, Identity)


def has_holder(folder: Path) -> bool:
    """Whether somebody is told there, readable or not."""
    return os.path.lexists(folder / _HOLDER)


def write_blueprint(folder: Path, blueprint: Blueprint) -> None:
    """For the supervisor, and for those who ask where what is."""
    _write(blueprint_file(folder), blueprint)


def read_blueprint(folder: Path) -> Blueprint | None:
    """None = there is none."""
    return _read(blueprint_file(folder), Blueprint)


def blueprint_file(folder: Path) -> Path:
    """Written once, before anything is started."""
    return folder / _BLUEPRINT


def remove_folder(folder: Path) -> None:
    """All of it, perhaps while somebody else does the same; of a link only the link goes.

    What tells of the stack goes last, and the state first of that: nobody sees a part of it, and what stays is seen.

    Raises:
        OSError: something stays.
    """
    with suppress(FileNotFoundError):
        if folder.is_symlink():
            folder.unlink()
            return
        for path in folder.iterdir():
            if path.name not in {_STATE, _BLUEPRINT}:
                _remove(path)
        for name in (_STATE, _BLUEPRINT):
            _remove(folder / name)
        try:
            folder.rmdir()
        except OSError:  # something was written meanwhile
            shutil.rmtree(folder)


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
            shutil.rmtree(path)
        else:
            path.unlink()


_T = TypeVar("_T")


def _write(path: Path, value: msgspec.Struct) -> None:
    if is_lost(path):
        discard(path)  # a pipe would be written into, and waited for
    write_atomically(path, msgspec.json.encode(value), unwritten)


def _read(path: Path, kind: type[_T]) -> _T | None:
    if is_lost(path):
        return None
    try:
        return decoded(path.read_bytes(), kind)
    except OSError:
        return None


def decoded(data: bytes, kind: type[_T]) -> _T | None:
    """None = it is none."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
