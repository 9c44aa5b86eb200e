"""The machine that sends: how busy its cores are, what memory is left, and its GPUs, as texts of /proc and nvidia-smi.

The readers are pure; only ``Machine`` opens files, and only ``gpu_text`` starts a program. Where the system has
neither, nothing is known.
"""

import math
import re
import shutil
import subprocess
from pathlib import Path

from withstand.record import Seen
from withstand.watch.rapl import Rapl

_STAT, _MEMINFO = Path("/proc/stat"), Path("/proc/meminfo")
_AVAILABLE = re.compile(r"^MemAvailable:\s+(\d+) kB$", re.MULTILINE)
_CPU = re.compile(r"^cpu +([0-9 ]+)$", re.MULTILINE)
_IDLE, _IOWAIT, _GUEST = 3, 4, 8
"""Places in the line; from the ninth on, time is told that has been told before."""
_KIB = 1024
_GPU_S_MAX = 5.0
_QUERY = ("index", "utilization.gpu", "memory.used", "memory.total", "power.draw")


class Machine:
    """Remembers the last reading, for a share is of the time between two."""

    def __init__(self) -> None:
        self._before = cpu_times(_text(_STAT))
        self._rapl = Rapl()

    def values(self) -> dict[Seen, float]:
        """What is known now."""
        times, before = cpu_times(_text(_STAT)), self._before
        self._before = times
        return cpu_share(before, times) | memory(_text(_MEMINFO)) | self._rapl.values()


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError:  # another system, or a container that hides it
        return ""


def cpu_times(stat: str) -> tuple[int, int] | None:
    """(Busy, all) in ticks since the start, over all cores."""
    line = _CPU.search(stat)
    ticks = [int(word) for word in line[1].split()][:_GUEST] if line else []
    if len(ticks) <= _IOWAIT:
        return None
    return sum(ticks) - ticks[_IDLE] - ticks[_IOWAIT], sum(ticks)


def cpu_share(before: tuple[int, int] | None, after: tuple[int, int] | None) -> dict[Seen, float]:
    """Between two readings."""
    if before is None or after is None or after[1] <= before[1]:
        return {}
    return {Seen.CPU_SHARE: min(1.0, max(0.0, (after[0] - before[0]) / (after[1] - before[1])))}


def memory(meminfo: str) -> dict[Seen, float]:
    """What programs can still have."""
    line = _AVAILABLE.search(meminfo)
    return {Seen.MEMORY_AVAILABLE_BYTES: float(int(line[1]) * _KIB)} if line else {}


def has_gpus() -> bool:
    """Whether anybody here could tell of them."""
    return shutil.which("nvidia-smi") is not None


def gpu_text() -> str:
    """A line a GPU; nothing where it does not answer in time."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    command = [program, f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GPU_S_MAX, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def gpus(text: str) -> dict[str, dict[Seen, float]]:
    """``gpu0`` → what is known of it; what a card does not tell stands there as ``[N/A]``."""
    found = {}
    for line in text.splitlines():
        words = [word.strip() for word in line.split(",")]
        if len(words) == len(_QUERY) and words[0].isdecimal():
            found[f"gpu{int(words[0])}"] = _gpu(*map(_number, words[1:]))
    return {name: values for name, values in found.items() if values}


def _gpu(percent: float | None, used: float | None, total: float | None, watts: float | None) -> dict[Seen, float]:
    told = {
        Seen.GPU_SHARE: None if percent is None else percent / 100,
        Seen.GPU_MEMORY_SHARE: used / total if used is not None and total else None,
        Seen.GPU_WATTS: watts,
    }
    return {seen: value for seen, value in told.items() if value is not None}


def _number(word: str) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
