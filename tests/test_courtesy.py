"""A process that goes after others: its own priority, and its session's where that is all its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cutting import wait_until
from withstand.processes.courtesy import go_after_others


@contextmanager
def sleeper(*, leads: bool, nice: int = 0) -> Iterator[int]:
    command = ["nice", "-n", str(nice), sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(command, start_new_session=leads) as process:
        yield process.pid
        process.kill()


def group_of(pid: int) -> str:
    path = Path(f"/proc/{pid}/autogroup")
    if not path.exists() or not path.read_text():
        pytest.skip("this kernel keeps no groups of sessions")
    return path.read_text()


def niceness(pid: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, pid)


@pytest.mark.parametrize("leads", [True, False])
def test_its_own_priority_falls(leads: bool) -> None:
    with sleeper(leads=leads) as pid:
        go_after_others(pid)
        assert niceness(pid) == os.nice(0) + 10


def test_what_is_nice_already_becomes_nicer_and_never_the_other_way() -> None:
    """As batch systems start all that they run; only a privileged process may take it back."""
    with sleeper(leads=True, nice=15) as pid:
        wait_until(lambda: niceness(pid) >= 15)
        go_after_others(pid)
        assert niceness(pid) == 19


def test_the_session_that_it_leads_falls_with_it() -> None:
    with sleeper(leads=True) as pid:
        assert group_of(pid).endswith("nice 0\n")
        go_after_others(pid)
        assert group_of(pid).endswith("nice 10\n")


def test_a_session_of_others_stays_as_it_is() -> None:
    with sleeper(leads=False) as pid:
        before = group_of(pid)
        go_after_others(pid)
        assert group_of(pid) == before
