"""Files of shared memory: which a process has mapped, and their end when nobody has any more. Linux.

An engine that is killed leaves them in ``/dev/shm``, where they take memory until the machine is started anew.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_SHM = "/dev/shm/"  # noqa: S108  where Linux has them
_PROC = Path("/proc")


def there() -> set[str]:
    """All paths, whoever they are of."""
    folder = Path(_SHM)
    return {str(path) for path in folder.iterdir()} if folder.is_dir() else set()


def mapped_by(pids: Iterable[int]) -> set[str]:
    """Their paths; none of a process that is gone, or somebody else's."""
    lines = [line for pid in pids for line in _maps(pid)]
    return {_SHM + found for line in lines if (found := line.partition(_SHM)[2]) and not found.endswith(" (deleted)")}


def remove(paths: Iterable[str]) -> None:
    """Those of them that no living process has mapped."""
    if wanted := {path for path in paths if Path(path).is_file()}:
        used = mapped_by(int(folder.name) for folder in _PROC.iterdir() if folder.name.isdecimal())
        for path in wanted - used:
            with suppress(OSError):  # it is gone already
                Path(path).unlink()


def _maps(pid: int) -> list[str]:
    try:
        return (_PROC / str(pid) / "maps").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
