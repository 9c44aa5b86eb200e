"""What the worker finds out about its own slowness while it works: cheap counters, made into a Health at the end."""

import gc
import resource
import sys
from pathlib import Path
from typing import Any

import msgspec

from withstand import clock
from withstand.load.corewait import core_wait_ns
from withstand.load.lag import LagHistogram
from withstand.load.limits import local_ports
from withstand.load.stamps import StampClock
from withstand.record import STALL_NS, Health

_GARBAGE, _SELDOM = 200_000, 1000
"""A stage makes no cycles; to look for them among thousands of living streams stalls the loop by 10 ms and more."""


class Taken(msgspec.Struct, frozen=True):
    """What the process has had of the machine so far."""

    wall_ns: int
    cpu_ns: int
    runqueue_wait_ns: int | None
    forced_switches: int

    @classmethod
    def now(cls) -> "Taken":
        """Up to this instant."""
        switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        return cls(clock.now_ns(), clock.cpu_ns(), core_wait_ns(), switches)


class SelfCheck:
    """Counters of one worker in one stage."""

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self.lag = LagHistogram()
        self.blind = LagHistogram()
        self.shared_reads = 0
        self.cuts_chunks = False
        """A read has ended within a chunk: whoever sends them does not write each in one piece."""
        self.stall_ns_max = 0
        self._stalls = self._stall_ns = 0
        self.connections_max = 0
        self._dials = 0
        self._gc_began_ns = 0
        self._gc_pauses = self._gc_pause_ns = self._gc_pause_ns_max = 0
        self._thresholds = gc.get_threshold()
        self._own_descriptors: int | None = None
        self._before = Taken.now()

    def count_own_descriptors(self) -> None:
        """What is open before the first connection; connections are counted as they are dialled."""
        self._own_descriptors = _open_descriptors()

    def begin(self) -> None:
        """The stage starts: what came before is not counted; garbage of the preparation is out of the way."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(_GARBAGE, _SELDOM, _SELDOM)
        gc.callbacks.append(self._on_gc)
        self._before = Taken.now()

    def add_turn(self, busy_ns: int) -> None:
        """The loop was busy for so long between two looks."""
        if busy_ns > STALL_NS:
            self._stalls += 1
            self._stall_ns += busy_ns
        self.stall_ns_max = max(self.stall_ns_max, busy_ns)

    def add_dial(self, connections: int) -> None:
        """A connection was opened, and with it there are so many."""
        self._dials += 1
        self.connections_max = max(self.connections_max, connections)

    def _on_gc(self, phase: str, _info: dict[str, Any]) -> None:
        now_ns = clock.now_ns()
        if phase == "start":
            self._gc_began_ns = now_ns
            return
        pause_ns = now_ns - self._gc_began_ns
        self._gc_pauses += 1
        self._gc_pause_ns += pause_ns
        self._gc_pause_ns_max = max(self._gc_pause_ns_max, pause_ns)

    def end(self, stamps: StampClock, *, sent: int, finished: int) -> Health:
        """The facts of the stage."""
        gc.callbacks.remove(self._on_gc)
        gc.set_threshold(*self._thresholds)
        before, after = self._before, Taken.now()
        own = self._own_descriptors
        return Health(
            worker=self._worker,
            sent=sent,
            finished=finished,
            wall_ns=after.wall_ns - before.wall_ns,
            cpu_ns=after.cpu_ns - before.cpu_ns,
            runqueue_wait_ns=_difference(before.runqueue_wait_ns, after.runqueue_wait_ns),
            forced_switches=after.forced_switches - before.forced_switches,
            rss_bytes_max=_rss_bytes_max(),
            lag=self.lag.spread(),
            blind=self.blind.spread(),
            loop_stall_ns_max=self.stall_ns_max,
            loop_stalls=self._stalls,
            loop_stall_ns=self._stall_ns,
            gc_pauses=self._gc_pauses,
            gc_pause_ns=self._gc_pause_ns,
            gc_pause_ns_max=self._gc_pause_ns_max,
            reads=self.lag.n + self.blind.n,
            shared_reads=self.shared_reads,
            descriptor_limit=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            descriptors_max=None if own is None else own + self.connections_max,
            connections_max=self.connections_max,
            dials=self._dials,
            ports=local_ports(),
            clock_steps=stamps.steps,
            clock_drift_ns=stamps.drift_ns,
            clock_width_ns=stamps.width_ns,
        )


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _open_descriptors() -> int | None:
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1  # one of them is the listing's own
    except OSError:
        return None


def _rss_bytes_max() -> int:
    """The peak of this process; getrusage would tell the parent's too, which Linux hands down at the fork."""
    try:
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
