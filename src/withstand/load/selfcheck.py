"""What the worker finds out about its own slowness while it works: cheap counters, made into a Health at the end."""

import gc
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from withstand import clock
from withstand.record import Health, Spread

_FINE_BITS = 10
_FINE = 1 << 14
_SUB_BUCKETS = 16
_SUB_BITS = 4


class LagHistogram:
    """Counts of ns values: by the microsecond (1,024 ns) up to 16 ms, above in buckets of at most 6 % width.

    Flat memory however many are added.
    """

    __slots__ = ("_coarse", "_fine", "_max_ns")

    def __init__(self) -> None:
        self._fine = [0] * _FINE
        self._coarse = [0] * (64 * _SUB_BUCKETS)
        self._max_ns = 0

    def add(self, value_ns: int) -> None:
        """One value, at least 0."""
        index = value_ns >> _FINE_BITS
        if index < _FINE:
            self._fine[index] += 1
        else:
            shift = value_ns.bit_length() - _SUB_BITS - 1
            self._coarse[shift * _SUB_BUCKETS + (value_ns >> shift)] += 1
            self._max_ns = max(self._max_ns, value_ns)

    @property
    def n(self) -> int:
        """How many were added."""
        return sum(self._fine) + sum(self._coarse)

    def spread(self) -> Spread | None:
        """Median, p99 and maximum; each is its bucket's upper end, but a maximum above 16 ms is exact."""
        n = self.n
        return Spread(n=n, p50_ns=self._at(n / 2), p99_ns=self._at(n * 0.99), max_ns=self._at(n)) if n else None

    def _at(self, rank: float) -> int:
        for upper_ns, count in self._buckets():
            rank -= count
            if count and rank <= 0:
                return upper_ns
        return self._max_ns

    def _buckets(self) -> Iterator[tuple[int, int]]:
        """(Upper end, count), rising."""
        for index, count in enumerate(self._fine):
            yield ((index + 1) << _FINE_BITS) - 1, count
        for index, count in enumerate(self._coarse):
            yield min(_upper_end(index), self._max_ns), count


def _upper_end(index: int) -> int:
    """The largest value of a bucket. Bucket ``shift * 16 + m`` holds values whose top bits are m, 16 <= m < 32."""
    shift = max(index // _SUB_BUCKETS - 1, 0)
    top = index - shift * _SUB_BUCKETS
    return ((top + 1) << shift) - 1


class SelfCheck:
    """Counters of one worker in one stage."""

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self.lag = LagHistogram()
        self.reads = 0
        self.shared_reads = 0
        self.stall_ns_max = 0
        self.connections_max = 0
        self._gc_began_ns = 0
        self._gc_pause_ns_max = 0
        self._wall_began_ns = clock.now_ns()
        self._cpu_began_ns = clock.cpu_ns()

    def begin(self) -> None:
        """The stage starts: what came before is not counted; garbage of the preparation is out of the way."""
        gc.collect()
        gc.freeze()
        gc.callbacks.append(self._on_gc)
        self._wall_began_ns = clock.now_ns()
        self._cpu_began_ns = clock.cpu_ns()

    def add_turn(self, busy_ns: int) -> None:
        """The loop was busy for so long between two looks."""
        self.stall_ns_max = max(self.stall_ns_max, busy_ns)

    def _on_gc(self, phase: str, _info: dict[str, Any]) -> None:
        now_ns = clock.now_ns()
        if phase == "start":
            self._gc_began_ns = now_ns
        else:
            self._gc_pause_ns_max = max(self._gc_pause_ns_max, now_ns - self._gc_began_ns)

    def end(self, *, sent: int, finished: int) -> Health:
        """The facts of the stage."""
        gc.callbacks.remove(self._on_gc)
        return Health(
            worker=self._worker,
            sent=sent,
            finished=finished,
            wall_ns=clock.now_ns() - self._wall_began_ns,
            cpu_ns=clock.cpu_ns() - self._cpu_began_ns,
            rss_bytes_max=_rss_bytes_max(),
            lag=self.lag.spread(),
            loop_stall_ns_max=self.stall_ns_max,
            gc_pause_ns_max=self._gc_pause_ns_max,
            reads=self.reads,
            shared_reads=self.shared_reads,
            descriptor_limit=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            connections_max=self.connections_max,
        )


def _rss_bytes_max() -> int:
    """The peak of this process; getrusage would tell the parent's too, which Linux hands down at the fork."""
    try:
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
