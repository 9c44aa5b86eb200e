"""What a client and its core did meanwhile: /proc, read a few times a second from beside it. Linux only.

CPU is user and system time of a process and of all that it started. Foreign CPU is what the core worked for others.
"""

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from withstand import clock

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
    wall_offset_ns: int
    """CLOCK_REALTIME - CLOCK_MONOTONIC."""
    processes: dict[int, Process]

    @property
    def rss_bytes(self) -> int:
        """Of all together; pages that they share count twice."""
        return sum(p.rss_bytes for p in self.processes.values())


class Usage(NamedTuple):
    """Between two instants; nan where there were no readings."""

    wall_ns: float
    cpu_ns: float
    busiest_cpu_ns: float
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
        self._strangers: set[int] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._stop.wait(_PERIOD_S):
            self.look()

    def look(self) -> None:
        """One reading more, if the family lives."""
        if processes := self._family():
            offset_ns, _ = clock.realtime_offset_ns()
            self.readings.append(Reading(clock.now_ns(), _idle_ns(self._core), offset_ns, processes))

    def _family(self) -> dict[int, Process]:
        """The process and all below it, as far as they live. A stranger is looked at once: this must cost little."""
        listed = {int(p.name) for p in Path("/proc").iterdir() if p.name.isdecimal()}
        self._strangers &= listed
        rows = {pid: row for pid in listed - self._strangers if (row := _stat(pid))}
        members = {self._pid} & rows.keys()
        while more := {pid for pid, row in rows.items() if int(row[1]) in members} - members:
            members |= more
        self._strangers |= rows.keys() - members
        return {pid: _process(pid, rows[pid]) for pid in members}

    def between(self, begin_ns: int, end_ns: int) -> Usage:
        """From the last reading before to the first one after, cut to nothing that was not read."""
        inside = [r for r in self.readings if begin_ns <= r.at_ns <= end_ns]
        if len(inside) < 2:
            return Usage(*[float("nan")] * 5)
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


def _stat(pid: int) -> list[str] | None:
    """The fields of ``stat`` from the state on; None = it has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
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
