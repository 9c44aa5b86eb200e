"""The histogram of lags is flat and true to a few per cent; an account holds what the system tells of a worker."""

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from subprocess import PIPE

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.load.lag import LagHistogram
from withstand.load.selfcheck import SelfCheck
from withstand.load.stamps import StampClock
from withstand.record import STALL_NS, Health


def test_empty_says_nothing() -> None:
    assert LagHistogram().spread() is None


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200))
def test_quantiles_are_at_most_one_bucket_off(values: list[int]) -> None:
    histogram = LagHistogram()
    for value in values:
        histogram.add(value)
    spread = histogram.spread()
    assert spread is not None
    ordered = sorted(values)
    for share, found in ((0.5, spread.p50_ns), (0.99, spread.p99_ns)):
        true = ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
        assert true <= found <= max(true * (1 + 1 / 16), true + 1024)
    assert spread.n == len(values)
    assert max(values) <= spread.max_ns <= max(values) + 1024


def health_of(work: Callable[[SelfCheck], None]) -> Health:
    check, stamps = SelfCheck(worker=3), StampClock()
    check.count_own_descriptors()
    check.begin()
    work(check)
    stamps.close()
    return check.end(stamps, sent=5, finished=4)


def test_an_account_has_every_fact_that_the_system_tells() -> None:
    health = health_of(lambda _: None)
    assert (health.worker, health.sent, health.finished, health.lost) == (3, 5, 4, False)
    told = msgspec.structs.asdict(health)
    unknown = {name for name, value in told.items() if value is None}
    assert unknown <= {"lag", "blind", "place", "clock_drift_ns", "runqueue_wait_ns", "descriptors_max", "ports"}
    if sys.platform == "linux":
        assert unknown <= {"lag", "blind", "place"}


def test_stalls_are_counted_above_the_everyday() -> None:
    def work(check: SelfCheck) -> None:
        for busy_ns in (STALL_NS // 2, STALL_NS * 3, STALL_NS * 2):
            check.add_turn(busy_ns)

    health = health_of(work)
    assert (health.loop_stalls, health.loop_stall_ns) == (2, 5 * STALL_NS)
    assert health.loop_stall_ns_max == 3 * STALL_NS


def test_collections_of_garbage_are_timed_and_no_longer_when_the_stage_is_over() -> None:
    def work(_: SelfCheck) -> None:
        gc.collect()
        gc.collect()

    health = health_of(work)
    before = len(gc.callbacks)
    assert health.gc_pauses is not None
    assert health.gc_pauses >= 2
    assert health.gc_pause_ns is not None
    assert 0 < health.gc_pause_ns_max <= health.gc_pause_ns
    health_of(lambda _: None)
    assert len(gc.callbacks) == before


def test_dials_and_descriptors() -> None:
    def work(check: SelfCheck) -> None:
        for connections in (1, 2, 2):
            check.add_dial(connections)

    health = health_of(work)
    assert (health.dials, health.connections_max) == (3, 2)
    if health.descriptors_max is not None:
        assert 2 < health.descriptors_max <= (health.descriptor_limit or 0)


BESIDE = """
import sys, msgspec
from withstand import clock
from withstand.load.selfcheck import SelfCheck
from withstand.load.stamps import StampClock
check = SelfCheck(worker=0)
check.begin()
until_ns = clock.cpu_ns() + 100_000_000
while clock.cpu_ns() < until_ns:
    pass
sys.stdout.buffer.write(msgspec.json.encode(check.end(StampClock(), sent=0, finished=0)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how long a process waited for a core")
def test_a_neighbour_on_the_same_core_is_seen() -> None:
    """The neighbour runs without end; we work beside it for a tenth of a second of our own."""
    core = min(os.sched_getaffinity(0))
    pinned = f"import os; os.sched_setaffinity(0, {{{core}}})"
    with subprocess.Popen(
        [sys.executable, "-c", f"{pinned}\nprint(flush=True)\nwhile True: pass"], stdout=PIPE
    ) as busy:
        try:
            assert busy.stdout is not None
            busy.stdout.readline()
            worker = [sys.executable, "-c", f"{pinned}\n{BESIDE}"]
            done = subprocess.run(worker, capture_output=True, check=True, timeout=60)
        finally:
            busy.kill()
    health = msgspec.json.decode(done.stdout, type=Health)
    assert (health.runqueue_wait_ns or 0) > health.cpu_ns / 10
    assert (health.forced_switches or 0) > 0
