"""What is left of programs that all have one folder in their environment. It believes no records of theirs."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_PROC, _SHM = Path("/proc"), Path("/dev/shm")
_LOOK_S = 0.1
_SETTLE_S = 2.0
"""What the kernel may take to make an end of what was killed."""
_OWN = ("said.log",)


class Left(NamedTuple):
    """Nothing of it may be there."""

    processes: tuple[str, ...]
    ports: tuple[int, ...]
    files: tuple[str, ...]
    shared_memory: tuple[str, ...]

    def __bool__(self) -> bool:
        return any(self[:])

    def __str__(self) -> str:
        told = {name: each for name, each in zip(self._fields, self, strict=True) if each}
        return "; ".join(f"{name} {', '.join(map(str, each))}" for name, each in told.items()) or "nothing"


class Ground:
    """A folder, and all that has to do with it."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @contextmanager
    def watched(self) -> Iterator[set[str]]:
        """Shared memory that was there before; the machine may have other users."""
        yield _shared_memory()

    def processes(self) -> list[int]:
        """By environment, command line or open files: nginx writes its title over its environment."""
        return [pid for pid in _pids() if pid != os.getpid() and self._has_to_do(pid)]

    def until_empty(self, within_s: float) -> float | None:
        """Seconds until no process is left; None = some are."""
        began_s = time.monotonic()
        while time.monotonic() - began_s < within_s:
            if not self.processes():
                return time.monotonic() - began_s
            time.sleep(_LOOK_S)
        return None

    def left(self, ports: set[int], shared_before: set[str]) -> Left:
        """Now, or a moment later if something is still going."""
        self.until_empty(_SETTLE_S)
        listening = _listening()
        return Left(
            tuple(f"{pid} {_text(pid, 'cmdline')[:60]}" for pid in self.processes()),
            tuple(sorted(ports & listening)),
            tuple(str(p.relative_to(self._home)) for p in _deepest(self._home) if p.name not in _OWN),
            tuple(sorted(_shared_memory() - shared_before - _mapped())),
        )

    def _has_to_do(self, pid: int) -> bool:
        home = str(self._home)
        if _state(pid) in "ZX":
            return False
        return home in _text(pid, "environ") or home in _text(pid, "cmdline") or any(home in f for f in _open(pid))


def _deepest(home: Path) -> list[Path]:
    """Files, and folders without any, but for those that we have made."""
    return [p for p in home.rglob("*") if p.parent != home and (not p.is_dir() or not any(p.iterdir()))] + [
        p for p in home.iterdir() if not p.is_dir()
    ]


def _pids() -> list[int]:
    return [int(folder.name) for folder in _PROC.glob("[0-9]*")]


def _text(pid: int, name: str) -> str:
    try:
        return (_PROC / str(pid) / name).read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def _state(pid: int) -> str:
    return (_text(pid, "stat").rpartition(")")[2].split() or ["X"])[0]


def _open(pid: int) -> list[str]:
    try:
        return [str(each.readlink()) for each in (_PROC / str(pid) / "fd").iterdir()]
    except OSError:  # it is gone, or closes just that one: another look follows
        return []


def _listening() -> set[int]:
    lines = [line.split() for name in ("tcp", "tcp6") for line in (_PROC / "net" / name).read_text().splitlines()[1:]]
    return {int(fields[1].rpartition(":")[2], 16) for fields in lines if fields[3] == "0A"}


def _shared_memory() -> set[str]:
    return {path.name for path in _SHM.iterdir()}


def _mapped() -> set[str]:
    """Of living processes: not left over, but in use."""
    maps = [_text(pid, "maps") for pid in _pids()]
    return {name for name in _shared_memory() if any(f"{_SHM}/{name}" in text for text in maps)}
