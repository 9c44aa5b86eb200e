"""A stack's folder is its supervisor's: one whose folder is gone, another's or not to be written lies to nobody."""

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stacks import command, held, stack, until, up
from withstand.cli.entry import exit_code_of
from withstand.errors import EngineError, StorageError
from withstand.processes.identity import Identity
from withstand.stack import local, taking_down
from withstand.stack.orders import ordered
from withstand.stack.restarting import restart
from withstand.stack.standing import SUPERVISORS, Standing, standing_of
from withstand.stack.state import StackState, has_holder, read_state
from withstand.stack.supervision import Phase

pytestmark = pytest.mark.usefixtures("state")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it")


def everybody(standing: Standing) -> list[Identity]:
    unit = standing.state.units[0]
    return [standing.state.supervisor, *(one for one in (unit.keeper, unit.leader) if one)]


def _state(standing: Standing) -> StackState:
    state = read_state(standing.folder)
    assert state
    return state


@contextmanager
def full(*pids: int) -> Iterator[None]:
    """No room for what these processes write."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        for pid in pids:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))


def test_a_supervisor_whose_folder_is_gone_or_anothers_ends_and_writes_nothing(tmp_path: Path) -> None:
    first = up(stack(a=command()))
    with (first.folder / "blueprint.json").open("rb") as was:
        shutil.rmtree(first.folder)
        until(lambda: not any(one.is_alive for one in everybody(first)))
        assert not first.folder.exists()
        second = up(stack(a=command()))
        late = [sys.executable, "-m", SUPERVISORS, str(second.folder)]
        marker = tmp_path / "said"
        with marker.open("wb") as said:
            subprocess.run(late, stdin=was, stderr=said, check=True)
        until(lambda: not _has_open(marker))
    assert marker.read_bytes() == b""
    assert _state(second) == second.state
    assert all(one.is_alive for one in everybody(second))


def test_a_state_that_somebody_removes_is_written_again() -> None:
    standing = up(stack(a=command()))
    (standing.folder / "state.json").unlink()
    until(lambda: standing_of("s"), within_s=10)
    assert _state(standing) == standing.state
    assert exit_code_of(["down", "s"]) == 0
    assert not any(one.is_alive for one in everybody(standing))
    assert not standing.folder.exists()


def _has_open(path: Path) -> bool:
    """Whether anybody has it still, which only Linux tells."""
    links = (link for link in Path("/proc").glob("[0-9]*/fd/2"))
    return any(link.samefile(path) for link in links if link.exists())


@LINUX
def test_up_ends_the_supervisor_of_a_folder_that_was_removed_before_it_makes_its_own() -> None:
    first = up(stack(a=command()))
    os.kill(first.state.supervisor.pid, signal.SIGSTOP)
    shutil.rmtree(first.folder)
    os.kill(first.state.supervisor.pid, signal.SIGCONT)
    second = up(stack(a=command()))
    assert not any(one.is_alive for one in everybody(first))
    assert all(one.is_alive for one in everybody(second))


@LINUX
def test_what_cannot_be_written_down_is_told_by_ps_and_keeps_restart_from_ending_anything(
    capsys: pytest.CaptureFixture[str],
) -> None:
    standing = up(stack(a=command()))
    with full(os.getpid()), pytest.raises(StorageError, match=r"cannot be written: File too large\. Free some space; "):
        restart(standing, ["a"], lambda _: None)
    [_, keeper, leader] = everybody(standing)
    assert leader.is_alive
    with full(standing.state.supervisor.pid):
        os.kill(leader.pid, signal.SIGKILL)
        until(lambda: not keeper.is_alive)
        assert exit_code_of(["ps"]) == 1
        said = capsys.readouterr().out
        assert (
            f"a has ended, and nothing newer is told: its supervisor, process {standing.state.supervisor.pid}" in said
        )
        assert exit_code_of(["ps", "--json"]) == 1
        [told] = json.loads(capsys.readouterr().out)
        assert (told["ready"], told["cure"], told["services"][0]["phase"]) == (False, "withstand down s", "unknown")
    until(lambda: _state(standing).units[0].phase is Phase.FAILED)
    with pytest.raises(EngineError, match=r"its supervisor is gone\. withstand down s, then up again"):
        restart(standing, ["a"], lambda state: os.kill(state.supervisor.pid, signal.SIGKILL))


def test_a_folder_is_no_order(tmp_path: Path) -> None:
    (tmp_path / "restart" / "a").mkdir(parents=True)
    assert ordered(tmp_path) == set()


def test_a_folder_that_stays_is_not_called_down(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(folder: Path, *, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(folder))

    standing = up(stack(a=command()))
    with monkeypatch.context() as patched:
        patched.setattr(taking_down.shutil, "rmtree", read_only)
        with pytest.raises(
            EngineError, match=r"All of the stack 's' has ended, but .* cannot be removed: Read-only file system"
        ):
            taking_down.take_down(standing)
    assert not any(one.is_alive for one in everybody(standing))


def test_a_run_joins_a_stack_that_came_up_when_it_was_about_to(monkeypatch: pytest.MonkeyPatch) -> None:
    lent, asked = local._lent, list[object]()

    def none_at_first(*told: object) -> Standing | None:
        asked.append(told)
        return lent(*told) if len(asked) > 1 else None  # type: ignore[arg-type]

    monkeypatch.setattr(local, "_lent", none_at_first)
    told = stack(a=command())
    up(told)
    with held(told) as standing:
        assert {unit.phase for unit in standing.state.units} == {Phase.READY}
        assert not has_holder(standing.folder)
    assert standing_of("s")
