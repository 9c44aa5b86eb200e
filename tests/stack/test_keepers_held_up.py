"""A keeper that is stopped or killed holds nobody up, and leaves nothing: neither a process nor one to be reaped."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stacks import command, stack, until, up
from withstand.errors import EngineError
from withstand.processes.identity import Identity
from withstand.stack.standing import Standing, standing_of
from withstand.stack.state import UnitState, log_of
from withstand.stack.supervision import Phase
from withstand.stack.taking_down import take_down

pytestmark = [
    pytest.mark.usefixtures("state"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose child is whose"),
]


def now() -> Standing:
    found = standing_of("s")
    assert found
    return found


def first() -> UnitState:
    return now().state.units[0]


def both(unit: UnitState) -> tuple[Identity, Identity]:
    assert unit.keeper
    assert unit.leader
    return unit.keeper, unit.leader


def is_starting() -> bool:
    found = standing_of("s")
    return bool(found and found.state.units[0].leader)


def zombies_of(parent: int) -> list[str]:
    stats = [_stat(folder) for folder in Path("/proc").glob("[0-9]*")]
    return [" ".join(stat) for stat in stats if stat[:1] == ["Z"] and stat[1] == str(parent)]


def _stat(folder: Path) -> list[str]:
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def test_a_service_that_is_not_ready_in_time_ends_though_its_keeper_is_stopped() -> None:
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(up, stack(a=command("0", "600", ready_s=2, stop_s=0.5)))
        until(is_starting)
        keeper, leader = both(first())
        os.kill(keeper.pid, signal.SIGSTOP)
        try:
            with pytest.raises(EngineError, match="a was not ready within 2 s"):
                coming.result(30)
        finally:
            if keeper.is_alive:
                os.kill(keeper.pid, signal.SIGCONT)
        assert not leader.is_alive
    assert f"a: its keeper, process {keeper.pid}, had not ended it within 3.5 s, and was killed" in _log()


def test_down_is_heard_while_a_stopped_keeper_is_waited_for() -> None:
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(up, stack(a=command("0", "600", ready_s=1, stop_s=20)))
        until(is_starting)
        keeper, leader = both(first())
        os.kill(keeper.pid, signal.SIGSTOP)
        try:
            until(lambda: _is_told_to_end(keeper))
            os.kill(now().state.supervisor.pid, signal.SIGTERM)
            until(lambda: now().state.ended, within_s=10)
        finally:
            os.kill(keeper.pid, signal.SIGCONT)
        with pytest.raises(EngineError, match="was taken down"):
            coming.result(30)
        assert not leader.is_alive


def _is_told_to_end(keeper: Identity) -> bool:
    """Whether nobody has the other end of its stdin any more."""
    pipe = Path(f"/proc/{keeper.pid}/fd/0").readlink()
    theirs = Path(f"/proc/{now().state.supervisor.pid}/fd")
    return str(pipe) not in [_target(fd) for fd in theirs.iterdir()]


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:  # it is closed by now
        return ""


def test_one_whose_keeper_is_stopped_and_that_ends_is_told_of_with_why() -> None:
    standing = up(stack(a=command("2", stop_s=0.5)))
    keeper, leader = both(first())
    os.kill(keeper.pid, signal.SIGSTOP)
    os.kill(leader.pid, signal.SIGKILL)
    until(lambda: first().phase is Phase.FAILED)
    told = f"has ended, but its keeper, process {keeper.pid}, had not ended it within 3.5 s, and was killed."
    assert first().reason == told
    assert zombies_of(standing.state.supervisor.pid) == []
    assert take_down(now()) == []


def test_of_a_killed_keeper_and_what_it_has_kept_nothing_waits_to_be_reaped() -> None:
    standing = up(stack(a=command("3", restart=True)))
    keeper, leader = both(first())
    os.kill(keeper.pid, signal.SIGKILL)
    until(lambda: first().phase is Phase.READY and first().restarts)
    assert not leader.is_alive
    assert zombies_of(standing.state.supervisor.pid) == []


def _log() -> str:
    return log_of(next(Path(os.environ["WITHSTAND_STATE"]).glob("stacks/s")), "a").read_text()
