"""Files of shared memory: which a process has mapped, and their end when nobody has any more. Linux.

An engine that is killed leaves them in ``/dev/shm``, where they take memory until the machine is started anew.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_SHM = "/dev/shm/"  # noqa: S108  where Linux has them
_PROC = Path("/proc")


def there() -> set[str]:
    """All paths, whoever they are of."""
    return set(_by_inode().values())


def mapped_by(pids: Iterable[int]) -> set[str]:
    """Their paths; none of a process that is gone, or somebody else's."""
    return _mapped(pids, by="")


def shared_by(pids: Iterable[int]) -> set[str]:
    """Those of them that a process may write to for others to see: what it only reads is somebody's."""
    return _mapped(pids, by="rw-s")


def remove(paths: Iterable[str]) -> None:
    """Those of them that no living process has mapped."""
    if wanted := set(paths) & there():
        used = mapped_by(int(folder.name) for folder in _PROC.iterdir() if folder.name.isdecimal())
        for path in wanted - used:
            with suppress(OSError):  # it is gone already
                Path(path).unlink()


def _mapped(pids: Iterable[int], by: str) -> set[str]:
    # By inode: a semaphore is mapped under a name that it had only while it was made.
    by_inode = _by_inode()
    told = (line.split(maxsplit=5) for pid in pids for line in _maps(pid) if _SHM in line)
    return {by_inode[fields[4]] for fields in told if fields[1].startswith(by) and fields[4] in by_inode}


def _by_inode() -> dict[str, str]:
    folder = Path(_SHM)
    entries = list(os.scandir(folder)) if folder.is_dir() else []
    return {str(entry.inode()): entry.path for entry in entries if entry.is_file(follow_symlinks=False)}


def _maps(pid: int) -> list[str]:
    try:
        return (_PROC / str(pid) / "maps").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
