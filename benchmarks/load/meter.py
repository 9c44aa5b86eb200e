"""What a client and its core did meanwhile: /proc, read a few times a second from beside it. Linux only.

CPU is user and system time of a process and of all that it started. Foreign CPU is what the core worked for others.
"""

import os
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PERIOD_S = 0.25


class Process(NamedTuple):
    """One process at one instant."""

    cpu_ns: int
    rss_bytes: int
    waited_ns: int
    """Since its start: ready to run, and not running."""


class Reading(NamedTuple):
    """A family of processes, and its core, at one instant."""

    at_ns: int
    idle_ns: int
    processes: dict[int, Process]

    @property
    def rss_bytes(self) -> int:
        """Of all together; pages that they share count twice."""
        return sum(p.rss_bytes for p in self.processes.values())


class Usage(NamedTuple):
    """Between two instants, as shares of one core."""

    wall_ns: int
    cpu_ns: int
    busiest_cpu_ns: int
    """Of the process that took most of it: withstand's worker."""
    waited_share: float
    """The busiest process was ready, and another had its core."""
    foreign_share: float

    @property
    def cpu_share(self) -> float:
        """All processes of the client."""
        return self.cpu_ns / self.wall_ns


class Meter:
    """A context: it reads while its block runs."""

    def __init__(self, pid: int, core: int) -> None:
        self.readings: list[Reading] = []
        self._pid = pid
        self._core = core
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._stop.wait(_PERIOD_S):
            if processes := _family(self._pid):
                self.readings.append(Reading(time.monotonic_ns(), _idle_ns(self._core), processes))

    def between(self, begin_ns: int, end_ns: int) -> Usage:
        """From the last reading before to the first one after, cut to nothing that was not read."""
        inside = [r for r in self.readings if begin_ns <= r.at_ns <= end_ns]
        if len(inside) < 2:
            return Usage(1, 0, 0, float("nan"), float("nan"))
        first, last = inside[0], inside[-1]
        wall_ns = last.at_ns - first.at_ns
        spent = {pid: _since(p, first.processes.get(pid)) for pid, p in last.processes.items()}
        busiest = max(spent.values(), key=lambda p: p.cpu_ns)
        cpu_ns = sum(p.cpu_ns for p in spent.values())
        busy_ns = wall_ns - (last.idle_ns - first.idle_ns)
        return Usage(
            wall_ns, cpu_ns, busiest.cpu_ns, busiest.waited_ns / wall_ns, max(0.0, (busy_ns - cpu_ns) / wall_ns)
        )

    def span(self, begin_ns: int, end_ns: int) -> tuple[int, int]:
        """The instants that ``between`` really measures from and to."""
        inside = [r.at_ns for r in self.readings if begin_ns <= r.at_ns <= end_ns]
        return (inside[0], inside[-1]) if inside else (begin_ns, end_ns)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()


def _since(now: Process, before: Process | None) -> Process:
    if before is None:
        return now
    return Process(now.cpu_ns - before.cpu_ns, now.rss_bytes, now.waited_ns - before.waited_ns)


def _family(root: int) -> dict[int, Process]:
    """The process and all below it, as far as they live."""
    rows = {int(p.name): row for p in Path("/proc").iterdir() if p.name.isdecimal() and (row := _stat(p))}
    members = {root} & rows.keys()
    while more := {pid for pid, row in rows.items() if int(row[1]) in members} - members:
        members |= more
    return {pid: _process(pid, rows[pid]) for pid in members}


def _stat(folder: Path) -> list[str] | None:
    """The fields of ``stat`` from the state on; None = it has ended meanwhile."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _process(pid: int, row: list[str]) -> Process:
    cpu_ns = (int(row[11]) + int(row[12])) * TICK_NS
    try:
        waited_ns = int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):  # it has ended, or this kernel does not count
        waited_ns = 0
    return Process(cpu_ns, int(row[21]) * PAGE_BYTES, waited_ns)


def _idle_ns(core: int) -> int:
    """Since the start of the machine: idle, or waiting for a disk."""
    for line in Path("/proc/stat").read_text().splitlines():
        words = line.split()
        if words[0] == f"cpu{core}":
            return (int(words[4]) + int(words[5])) * TICK_NS
    raise AssertionError(f"/proc/stat has no core {core}")
