"""A stack's folder is its supervisor's: one whose folder is gone, another's or not to be written lies to nobody."""

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from stacks import command, held, stack, until, up
from withstand.cli.entry import exit_code_of
from withstand.errors import EngineError, StorageError
from withstand.processes.identity import Identity, end, identity_of, run_as
from withstand.stack import local, taking_down
from withstand.stack.orders import ordered
from withstand.stack.restarting import restart
from withstand.stack.standing import Standing, check_readable, no_room, standing_of, supervisors_arguments
from withstand.stack.state import StackState, has_holder, read_state, remove_folder, write_blueprint, write_state
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
        late = [sys.executable, *supervisors_arguments(second.folder)]
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
@pytest.mark.parametrize(
    "before", [["sh", "-c", "sleep 60; :"], [sys.executable, "-c", "import time; time.sleep(60)"]], ids=["sh", "python"]
)
def test_up_leaves_alone_who_only_names_a_supervisor_and_its_folder(before: list[str], state: Path) -> None:
    folder = state / "stacks" / "s"
    with subprocess.Popen([*before, *supervisors_arguments(folder)[-2:]]) as stranger:
        try:
            up(stack(a=command()))
            assert stranger.poll() is None
        finally:
            stranger.kill()


@LINUX
def test_who_runs_the_same_as_another_user_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60.25"]) as stranger:
        try:
            until(lambda: identity_of(stranger.pid) in run_as("60.25"))
            monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)
            assert run_as("60.25") == []
        finally:
            stranger.kill()


ORPHAN = "import subprocess; print(subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL).pid)"


@LINUX
@pytest.mark.parametrize("later_s", [-1.0, 1.0], ids=["after", "before"])
def test_of_a_session_without_its_leader_only_what_began_before_the_state_was_written_is_the_stacks(
    later_s: float,
) -> None:
    standing = up(stack(a=command(stop_s=0)))
    os.kill(standing.state.supervisor.pid, signal.SIGKILL)
    until(lambda: not any(one.is_alive for one in everybody(standing)))
    with subprocess.Popen([sys.executable, "-c", ORPHAN], start_new_session=True, stdout=subprocess.PIPE) as leader:
        told = leader.stdout.readline() if leader.stdout else b""
    stranger = identity_of(int(told))
    assert stranger
    [unit] = standing.state.units
    was = Identity(leader.pid, str(int(stranger.started) - 1000))
    state = replace(standing.state, units=(replace(unit, leader=was),))
    write_state(standing.folder, state)
    os.utime(standing.folder / "state.json", (time.time() + later_s,) * 2)
    assert taking_down.take_down(replace(standing, state=state)) == []
    assert stranger.is_alive == (later_s < 0)
    if stranger.is_alive:
        os.kill(stranger.pid, signal.SIGKILL)


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


def test_several_may_try_at_once_whether_there_is_room(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(no_room, [tmp_path] * 400)) == {None}
    assert list(tmp_path.iterdir()) == []


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


def _stands(standing: Standing) -> bool:
    return all(one.is_alive for one in everybody(standing)) and _state(standing) == standing.state


def test_who_has_been_taken_down_leaves_the_next_of_its_name_alone() -> None:
    told, first, second = stack(a=command()), list[Standing](), list[Standing]()

    def measured() -> None:
        with held(told) as standing:
            first.append(standing)
            assert exit_code_of(["down", "s", "--force"]) == 0
            second.append(up(told))

    with pytest.raises(EngineError, match="While the stack 's' was measured, it was taken down"):
        measured()
    assert _stands(second[0])
    assert taking_down.take_down(first[0]) == []
    assert _stands(second[0])


@pytest.mark.parametrize("after", [1, 2], ids=["its supervisor's end", "its services' end"])
def test_a_down_that_is_overtaken_leaves_the_next_of_its_name_alone(
    after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, ended, second = stack(a=command()), list[object](), list[Standing]()
    first = up(told)

    def overtaken(identities: Iterable[Identity], within_s: float) -> list[Identity]:
        left = end(identities, within_s)
        ended.append(left)
        if len(ended) == after:
            second.append(up(told))
        return left

    monkeypatch.setattr(taking_down, "end", overtaken)
    assert taking_down.take_down(first) == []
    assert _stands(second[0])


def test_who_waits_for_one_that_was_replaced_does_not_take_the_next_for_it() -> None:
    told, second = stack(a=command("0", "0.5")), list[Standing]()

    def replaced(_: StackState) -> None:
        if not second:
            assert exit_code_of(["down", "s", "--force"]) == 0
            second.append(up(told))

    with pytest.raises(EngineError, match=r"^The stack 's' was taken down while it came up\.$"):
        local.bring_up(told, lambda *_: None, replaced)
    assert _stands(second[0])


def test_a_folder_in_which_another_one_comes_up_stays() -> None:
    first = up(stack(a=command()))
    assert taking_down.take_down(first) == []
    first.folder.mkdir(parents=True)
    write_blueprint(first.folder, first.blueprint)
    assert taking_down.take_down(first) == []
    assert (first.folder / "blueprint.json").exists()


def test_of_a_folder_that_is_a_link_the_link_goes(tmp_path: Path) -> None:
    standing = up(stack(a=command()))
    os.kill(standing.state.supervisor.pid, signal.SIGKILL)
    until(lambda: not any(one.is_alive for one in everybody(standing)))
    elsewhere = standing.folder.rename(tmp_path / "elsewhere")
    standing.folder.symlink_to(elsewhere)
    (elsewhere / "somebodys").touch()
    assert exit_code_of(["down", "s"]) == 0
    assert not os.path.lexists(standing.folder)
    assert (elsewhere / "somebodys").exists()


def test_who_looks_while_a_stack_goes_finds_all_of_it_or_nothing(tmp_path: Path) -> None:
    standing, done = up(stack(a=command())), list[bool]()
    kept = shutil.copytree(standing.folder, tmp_path / "kept")
    assert taking_down.take_down(standing) == []
    standing.folder.parent.mkdir(parents=True)

    def look() -> int:
        times = 0
        while not done:
            check_readable()
            times += 1
        return times

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            for _ in range(200):
                shutil.copytree(kept, tmp_path / "next").rename(standing.folder)
                time.sleep(0.002)
                remove_folder(standing.folder)
        finally:
            done.append(True)
        assert looking.result()


def test_two_may_remove_a_folder_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    for _ in range(20):
        for number in range(100):
            (folder / "logs" / str(number)).mkdir(parents=True)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(remove_folder, [folder, folder]))
        assert not folder.exists()


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
