"""Is the limit of a real server found, over real sockets, and sooner than by a sweep? Wants a quiet machine.

    python -m benchmarks.control.real_limits               three truth servers of known limits, some minutes each
    python -m benchmarks.control.real_limits --engine      the embedded engine, twice: do the intervals overlap?

The truth servers are those of ``limits`` with their times scaled down, and so with their rates scaled up: the true
limit is known from very long runs of the same queue in virtual time. The sweep's time is that of the sweep of
``limits`` on that queue whose error is 5 % at most in nine cases of ten; the search gets half of that, or six minutes.
"""

import argparse
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from benchmarks.control.limits import Server, sweep_as_good, true_limit

from withstand.control.limit import Limit
from withstand.spec import promise_of
from withstand.testing import Schedule, TruthServer
from withstand.testing.queues import Queue, batched, fixed

_HEADINGS = ("server", "promised", "true req/s", "found", "interval", "holds", "off", "time", "sweep", "ratio")
_SEARCH_S = 360.0
_ENGINE = ("--axis", "concurrency", "--input-len", "16", "--output-len", "8", "--budget", "8m")
"""A laptop answers four such requests a second: of longer ones a search would take an hour."""
_TRIALS = 20
_PRECISION = 0.05
_SWEEP_S = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


class Real(msgspec.Struct, frozen=True):
    """A truth server, and the same in virtual time."""

    virtual: Server
    schedule: Schedule
    slots: int | None = None
    batch: float = 0.0


def _virtual(name: str, queue: Queue, promise: str, between_rps: tuple[float, float]) -> Server:
    return Server(name, queue, promise_of(promise), between_rps[0], between_rps)


REAL = (
    Real(
        _virtual("M/D/1, 20 ms", Queue(1, fixed(0.018, 0.002), 2), "ttft:p90:72", (10.0, 50.0)),
        Schedule(ttft_ms=18, itl_ms=2, tokens=2),
        slots=1,
    ),
    Real(
        _virtual("8 slots, 80 ms each", Queue(8, fixed(0.01, 0.07), 8), "ttft:p90:30", (25.0, 100.0)),
        Schedule(ttft_ms=10, itl_ms=10, tokens=8),
        slots=8,
    ),
    Real(
        _virtual("a batch that slows down", Queue(64, batched(0.01, 0.2, 0.01), 51), "tpot:p95:8", (10.0, 150.0)),
        Schedule(ttft_ms=10, itl_ms=4, tokens=51),
        batch=0.05,
    ),
)
"""Of the last one each answer takes 10 ms longer for each that is under way: 50 gaps of 4 ms, and 5 % of one more."""


def searched(target: tuple[str, ...], promise: str, *more: str) -> tuple[Limit, float]:
    """What ``withstand find-limit`` finds, and in how many seconds."""
    command = [sys.executable, "-m", "withstand", "find-limit", *target, "--slo", promise, *more, "--json"]
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        done = subprocess.run(
            [*command, "--output-dir", str(Path(folder) / "run")], stdout=subprocess.PIPE, check=False
        )
        return msgspec.json.decode(done.stdout, type=Limit), time.monotonic() - began


def _told(promise: object) -> str:
    """As it is typed."""
    assert isinstance(promise, msgspec.Struct)
    parts = msgspec.structs.asdict(promise)
    return f"{parts['metric']}:p{100 * parts['share']:g}:{parts['limit']:g}"


def _cells(real: Real) -> list[str]:
    server = real.virtual
    true_rps = true_limit(server)
    tokens = ("--output-len", str(real.schedule.tokens), "--set", "workload.options.input_len=8")
    with TruthServer(real.schedule, slots=real.slots, batch=real.batch) as truth:
        target = ("--base-url", truth.base_url, *tokens)
        sweep_s = sweep_as_good(server, true_rps, _TRIALS, _PRECISION, _SWEEP_S)
        budget_s = min(_SEARCH_S, (sweep_s or math.inf) / 2)
        limit, took_s = searched(target, _told(server.promise), "--budget", f"{budget_s:.0f}s")
    low, high = limit.interval.low, limit.interval.high
    off = abs(limit.load / true_rps - 1) if limit.load else None
    return [
        server.name,
        str(server.promise),
        f"{true_rps:.1f}",
        f"{limit.load:.1f}" if limit.load else "-",
        f"{low or 0:g} to {high or 0:g}",
        "yes" if low and high and low <= true_rps <= high else "no",
        f"{off:.1%}" if off is not None else "-",
        f"{took_s:.0f} s",
        f"{sweep_s:.0f} s" if sweep_s else "none was as good",
        f"{took_s / sweep_s:.2f}" if sweep_s else "-",
    ]


def _engine_twice(promise: str) -> None:
    """The embedded engine: whether two searches agree."""
    first, second = (searched((), promise, *_ENGINE)[0] for _ in range(2))
    for limit in (first, second):
        print(f"{limit.load}, between {limit.interval.low} and {limit.interval.high} users at a time")
    one, other = first.interval, second.interval
    if one.low is None or one.high is None or other.low is None or other.high is None:
        print("an end was not found")
        return
    overlap = one.low <= other.high and other.low <= one.high
    print("the intervals overlap" if overlap else "the intervals do not overlap")


def main() -> None:
    """Print the table, or the two intervals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", action="store_true")
    parser.add_argument("--server", default="", help="only those with this in their name")
    parser.add_argument("--slo", default="ttft:p90:1000", help="for the engine")
    asked = parser.parse_args()
    if asked.engine:
        _engine_twice(asked.slo)
        return
    print(f"| {' | '.join(_HEADINGS)} |")
    print(f"|{' --- |' * len(_HEADINGS)}")
    for real in (real for real in REAL if asked.server in real.virtual.name):
        print(f"| {' | '.join(_cells(real))} |", flush=True)


if __name__ == "__main__":
    main()
