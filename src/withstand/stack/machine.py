"""What this machine has left for an engine: memory, disk, cores. None = it does not tell, so nothing is refused."""

import os
import shutil
from pathlib import Path

from withstand.errors import EngineError

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
CPUS = Path("/sys/devices/system/cpu")


def require_memory(needed: int, what: str) -> None:
    """Nothing, if there is enough.

    Raises:
        EngineError: there is not.
    """
    available = available_memory_bytes()
    if available is not None and available < needed:
        raise EngineError(
            f"{what} needs {needed / 1e9:.1f} GB of memory and {available / 1e9:.1f} GB are available; "
            "close other programs, or measure an endpoint elsewhere by --base-url."
        )


def require_disk(folder: Path, needed: int, cure: str) -> None:
    """Nothing, if there is enough.

    Raises:
        EngineError: there is not.
    """
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise EngineError(f"{folder} needs {needed / 1e6:.0f} MB of free disk and has {free / 1e6:.0f} MB; {cure}.")


def available_memory_bytes() -> int | None:
    """What may still be taken, by the machine's own account and by the container's limit."""
    found = [n for n in (_machine_memory(), _container_memory()) if n is not None]
    return min(found, default=None)


def _machine_memory() -> int | None:
    for line in _read(MEMINFO).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _container_memory() -> int | None:
    limit, used = _read(CGROUP / "memory.max").strip(), _read(CGROUP / "memory.current").strip()
    return int(limit) - int(used) if limit.isdecimal() and used.isdecimal() else None


def usable_cores() -> int:
    """Physical cores that we may run on, at least 1: two threads of one core are one, and a container has its share."""
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    physical = len({_core_of(cpu) for cpu in cpus})
    quota = _container_cores()
    return max(1, physical if quota is None else min(physical, int(quota)))


def _core_of(cpu: int) -> str:
    """The same text for all hardware threads of one core."""
    return _read(CPUS / f"cpu{cpu}/topology/thread_siblings_list").strip() or str(cpu)


def _container_cores() -> float | None:
    quota, _, period = _read(CGROUP / "cpu.max").strip().partition(" ")
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() else None


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
