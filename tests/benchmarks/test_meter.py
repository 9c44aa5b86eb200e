import os
import subprocess
import sys
import time

import pytest
from benchmarks.load.meter import Meter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

BUSY_CHILD = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"


def test_what_a_process_has_started_counts_as_its_own() -> None:
    core = min(os.sched_getaffinity(0))
    process = subprocess.Popen([sys.executable, "-c", BUSY_CHILD], start_new_session=True)
    try:
        with Meter(process.pid, core) as meter:
            began_ns = time.monotonic_ns()
            time.sleep(2)
            usage = meter.between(began_ns, time.monotonic_ns())
    finally:
        os.killpg(process.pid, 9)
        process.wait()
    assert max(len(reading.processes) for reading in meter.readings) == 2
    assert max(reading.rss_bytes for reading in meter.readings) > 1_000_000
    assert 0 < usage.busiest_cpu_ns <= usage.cpu_ns
    assert usage.cpu_share < 1.5


def test_a_time_without_readings_is_not_known() -> None:
    usage = Meter(1, 0).between(0, 1)
    assert usage.foreign_share != usage.foreign_share
