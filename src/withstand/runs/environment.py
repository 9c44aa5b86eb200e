"""The machine that measured, in words: what a reader must know before he compares two runs."""

import os
import platform
import resource
from pathlib import Path

from withstand import __version__, clock
from withstand.runs.manifest import Manifest, Writer

_PID_MAX = (1 << 31) - 1


def machine_facts() -> dict[str, str]:
    """Name → value; what cannot be found out is left out."""
    facts = {
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "cpu": _cpu_model(),
        "cores": str(allowed_cores()),
        "cpu limit": _cgroup_cpus(),
        "memory": _memory(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "withstand": __version__,
        "open files": str(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
    }
    return {name: value for name, value in facts.items() if value}


def allowed_cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def _cpu_model() -> str:
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _memory() -> str:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return ""
    return f"{total / 2**30:.1f} GiB"


def _cgroup_cpus() -> str:
    quota, _, period = _read(Path("/sys/fs/cgroup/cpu.max")).strip().partition(" ")
    return f"{int(quota) / int(period):g} cores" if quota.isdecimal() and period.isdecimal() else ""


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def this_process() -> Writer:
    """The identity of this process."""
    return Writer(pid=os.getpid(), started=_start_time(os.getpid()))


def epoch_ns(manifest: Manifest) -> int:
    """A run's epoch on this boot's monotonic clock: a resumed run may have seen another."""
    now = clock.anchor()
    return now.monotonic_ns - (now.wall_ns - manifest.anchor.wall_ns)


def still_runs(writer: Writer) -> bool:
    """Whether the process that wrote the folder is alive; a reused pid is told by its start time."""
    if not 0 < writer.pid <= _PID_MAX:
        return False
    try:
        os.kill(writer.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it lives, under another user
    return writer.started is None or _start_time(writer.pid) == writer.started


def _start_time(pid: int) -> str | None:
    """Ticks since boot at which a process began; None where /proc does not tell."""
    stat = _read(Path(f"/proc/{pid}/stat"))
    return stat.rpartition(")")[2].split()[19] if stat else None
