"""The only file that reads a clock.

Inside, time is an int of nanoseconds on CLOCK_MONOTONIC, which all processes of one host share.
A wall-clock reading is taken once, beside a monotonic one, as an anchor for people and log files.
"""

import datetime as dt
import time

import msgspec

now_ns = time.monotonic_ns
steady_s = time.monotonic
cpu_ns = time.process_time_ns
wall_s = time.time
sleep_s = time.sleep


class Anchor(msgspec.Struct, frozen=True):
    """One instant on both clocks: the epoch of a run."""

    wall_ns: int
    monotonic_ns: int


def anchor() -> Anchor:
    """The present instant, as the tightest of a few paired readings."""
    offset_ns, _ = realtime_offset_ns()
    monotonic_ns = now_ns()
    return Anchor(wall_ns=monotonic_ns + offset_ns, monotonic_ns=monotonic_ns)


def realtime_offset_ns(tries: int = 16) -> tuple[int, int]:
    """(CLOCK_REALTIME - CLOCK_MONOTONIC, its uncertainty), from the tightest of ``tries`` readings."""
    best_width_ns, best_offset_ns = 1 << 62, 0
    for _ in range(tries):
        before_ns = time.monotonic_ns()
        wall_ns = time.time_ns()
        after_ns = time.monotonic_ns()
        if after_ns - before_ns < best_width_ns:
            best_width_ns = after_ns - before_ns
            best_offset_ns = wall_ns - (before_ns + after_ns) // 2
    return best_offset_ns, best_width_ns


def on_the_wall(at_s: float) -> float:
    """What the wall clock said at an instant of ``steady_s``, unless it was set since."""
    return wall_s() - (steady_s() - at_s)


def utc_iso(wall_ns: int) -> str:
    """``2026-11-28T03:04:05Z``."""
    return dt.datetime.fromtimestamp(wall_ns // 1_000_000_000, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def wall_of(utc: str) -> float | None:
    """The way back, in seconds; None where it is no such text."""
    try:
        return dt.datetime.strptime(utc, "%Y-%m-%dT%H:%M:%S%z").timestamp()
    except (ValueError, OverflowError):
        return None


def local_stamp() -> str:
    """``20261128-030405``: the local time as it stands in a folder's name."""
    return dt.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
