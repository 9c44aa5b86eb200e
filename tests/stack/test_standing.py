"""What stands of stacks is told truly, also where it is damaged, another machine's, or a run's alone."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stacks import command, held, stack, until, up
from withstand.cli.entry import exit_code_of
from withstand.errors import EngineError, StorageError, UsageError
from withstand.processes.identity import end, identity_of
from withstand.stack import local
from withstand.stack.cache import cache_folder
from withstand.stack.local import bring_up
from withstand.stack.standing import Standing, standing_of, standings, supervisors_end, supervisors_of
from withstand.stack.state import StackState, read_holder, write_holder
from withstand.stack.supervision import Phase
from withstand.stack.taking_down import take_down

pytestmark = pytest.mark.usefixtures("state")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it")


@pytest.fixture
def retold() -> Iterator[Callable[..., Path]]:
    """Change what a stack's file tells; it is put back at the end, so that the stack can be taken down."""
    kept: dict[Path, bytes] = {}

    def change(standing: Standing, **fields: Any) -> Path:
        path = standing.folder / "state.json"
        kept.setdefault(path, path.read_bytes())
        path.write_text(json.dumps(json.loads(kept[path]) | fields))
        return path

    yield change
    for path, data in kept.items():
        path.unlink(missing_ok=True)
        path.write_bytes(data)


@LINUX
@pytest.mark.parametrize("fields", [{"pid_space": "pid:[1]"}, {"boot": "another", "host": "far-away"}])
def test_a_stack_of_another_machine_or_container_is_left_alone(
    fields: dict[str, str], retold: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    standing = up(stack(a=command()))
    assert standing.state.host
    retold(standing, boot="another")
    assert not standings()[0].is_elsewhere, "this machine was started anew"
    retold(standing, **fields)
    for argv in (["down", "s"], ["down", "--all", "--force"]):
        assert exit_code_of(argv) == EngineError.exit_code
        assert "belongs to another machine or container" in capsys.readouterr().err
    with pytest.raises(EngineError, match="belongs to another machine or container"):
        up(stack(a=command()))
    with pytest.raises(EngineError, match="belongs to another machine or container"), held(stack(a=command())):
        pass
    assert exit_code_of(["ps"]) == 0
    assert "(of another machine or container: host " in capsys.readouterr().out
    assert standing.state.supervisor.is_alive
    assert all(unit.leader and unit.leader.is_alive for unit in standing.state.units)
    assert standing.folder.exists()


@LINUX
def test_down_from_another_container_refuses() -> None:
    inside = ["unshare", "-p", "-f", "--mount-proc"]
    if not shutil.which("unshare") or subprocess.run([*inside, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no other numbering of processes can be had here")
    standing = up(stack(a=command()))
    for verb in (["down", "s"], ["ps"]):
        done = subprocess.run(
            [*inside, sys.executable, "-m", "withstand", *verb], capture_output=True, text=True, check=False
        )
        assert "another machine or container" in done.stdout + done.stderr
        assert done.returncode == (3 if verb[0] == "down" else 0)
    assert standing.state.supervisor.is_alive
    assert standing.folder.exists()


def test_a_state_that_cannot_be_read_is_not_hidden_and_hides_no_other(
    retold: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    broken = up(stack("broken", a=command()))
    up(stack("whole", a=command()))
    unit = json.loads((broken.folder / "state.json").read_bytes())["units"][0]
    path = retold(broken, units=[unit | {"name": "unheard-of"}])
    for argv in (["ps", "--json"], ["ps"]):
        assert exit_code_of(argv) == EngineError.exit_code
        said = capsys.readouterr()
        assert "whole" in said.out
        assert "broken" not in said.out
        assert "broken tells of a stack cannot be read" in said.err
        if sys.platform == "linux":
            assert f"End its supervisor, process {broken.state.supervisor.pid}, and remove" in said.err
    path.unlink()
    os.mkfifo(path)
    assert exit_code_of(["ps"]) == EngineError.exit_code
    (standing_of("whole").folder / "holder.json").unlink(missing_ok=True)  # type: ignore[union-attr]
    os.mkfifo(standing_of("whole").folder / "holder.json")  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="up for a run alone cannot be read in"), held(stack("whole", a=command())):
        pass
    assert exit_code_of(["down", "whole"]) == UsageError.exit_code
    assert exit_code_of(["down", "whole", "--force"]) == 0


def test_where_one_cannot_be_read_none_is_not_what_is_said(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (state / "stacks" / "broken").mkdir(parents=True)
    (state / "stacks" / "broken" / "state.json").write_text("{")
    assert exit_code_of(["ps"]) == EngineError.exit_code
    said = capsys.readouterr()
    assert said.out == ""
    assert "broken tells of a stack cannot be read" in said.err


def test_a_folders_name_does_not_command_the_terminal(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    standing = up(stack(a=command()))
    shutil.copytree(standing.folder, state / "stacks" / "x\x1b]0;pwned\x07")
    assert exit_code_of(["ps"]) == EngineError.exit_code
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    shutil.rmtree(state / "stacks" / "x\x1b]0;pwned\x07")


def test_the_holder_is_there_before_anything_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []

    def not_now(folder: Path, _: object) -> None:
        found.append(read_holder(folder))
        raise ZeroDivisionError

    monkeypatch.setattr(local, "supervise", not_now)
    with pytest.raises(ZeroDivisionError), held(stack(a=command())):
        pass
    assert found == [identity_of(os.getpid())]


@pytest.mark.parametrize("error", [StorageError("no room"), KeyboardInterrupt()])
def test_a_holder_that_cannot_be_written_leaves_nothing_up(
    error: BaseException, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr(local, "write_holder", full)
    with pytest.raises(type(error)), held(stack(a=command())):
        pass
    assert standing_of("s") is None
    assert supervisors_of(state / "stacks" / "s") == []


def test_an_interrupt_right_after_its_start_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "_wait_until_up", interrupted)
    with pytest.raises(KeyboardInterrupt), held(stack(a=command())):
        pass
    standing = standing_of("s")
    assert standing
    assert not standing.state.supervisor.is_alive


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_burst_of_interrupts_during_its_start_ends_it_too(
    number: signal.Signals, state: Path, tmp_path: Path
) -> None:
    """As `timeout` sends them: to the process, and to its group."""
    (tmp_path / "s.json").write_text(
        json.dumps({"engines": {"a": command()}, "plan": {"workload": {"dataset": "random"}}})
    )
    command_line = [sys.executable, "-m", "withstand", "run", "s.json", "--quiet"]
    with subprocess.Popen(command_line, cwd=tmp_path, start_new_session=True, stderr=subprocess.DEVNULL) as run:
        until((state / "stacks" / "s" / "logs" / "supervisor.log").exists)
        for _ in range(3):
            os.kill(run.pid, number)
    assert run.returncode == 130
    standing = standing_of("s")
    assert standing is None or not standing.is_up
    assert supervisors_of(state / "stacks" / "s") == []


def test_a_run_that_prepares_its_stack_has_it_alone(capsys: pytest.CaptureFixture[str]) -> None:
    told, begun, goes_on = stack(a=command("0", "1.5")), list[StackState](), list[bool]()

    def first() -> None:
        with local.standing_for(told, lambda *_: None, begun.append, lambda _: None) as standing:
            until(lambda: goes_on)
            assert standing.is_up

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(first)
        until(lambda: begun)
        for other in (told, stack(a=command("0", "1.6"))):
            with pytest.raises(
                UsageError, match=rf"up for another run alone \(process {os.getpid()}\).*; wait for that, or bring"
            ):
                held(other).__enter__()
        with pytest.raises(UsageError, match=r"for another run alone .*; wait for that, or give this one another name"):
            up(told)
        assert exit_code_of(["down", "s"]) == UsageError.exit_code
        assert "end that run, or take the stack down under it by --force" in capsys.readouterr().err
        assert exit_code_of(["down", "--all"]) == UsageError.exit_code
        assert exit_code_of(["restart", "s", "a"]) == UsageError.exit_code
        assert "end that run, or start them again under it by --force" in capsys.readouterr().err
        assert exit_code_of(["ps"]) == 0
        assert f"(for the run of process {os.getpid()} alone)" in capsys.readouterr().out
        goes_on.append(True)
        running.result()
    assert standing_of("s") is None


def test_who_measures_one_that_is_taken_away_hears_of_that() -> None:
    def measure(error: Exception | None) -> None:
        with held(stack(a=command())):
            assert exit_code_of(["down", "s", "--force"]) == 0
            if error:
                raise error

    for error in (None, UsageError("no answer")):
        with pytest.raises(EngineError, match="While the stack 's' was measured, it was taken down; what was"):
            measure(error)


def test_who_waits_for_one_that_is_taken_away_is_not_sent_to_logs_that_are_gone() -> None:
    def down(state: StackState) -> None:
        if state.units[0].phase is Phase.STARTING:
            assert exit_code_of(["down", "s", "--force"]) == 0

    with pytest.raises(EngineError, match=r"^The stack 's' was taken down while it came up\.$"):
        bring_up(stack(a=command("0", "600")), lambda *_: None, down)


def test_a_run_that_was_killed_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    standing = up(stack(a=command()))
    with subprocess.Popen(["sleep", "600"]) as run:
        holder = identity_of(run.pid)
        assert holder
        run.kill()
    write_holder(standing.folder, holder)
    assert exit_code_of(["ps"]) == 0
    assert f"(its run, process {holder.pid}, is gone: withstand down s)" in capsys.readouterr().out
    assert exit_code_of(["ps", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["held_by"] == {"pid": holder.pid, "alive": False}
    assert exit_code_of(["down", "s"]) == 0


def test_the_last_word_of_a_supervisor_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    standing = up(stack(a=command()))
    os.kill(standing.state.supervisor.pid, signal.SIGKILL)
    until(lambda: not standing.state.supervisor.is_alive)
    assert exit_code_of(["ps"]) == 1
    assert "(its supervisor was killed: withstand down s)" in capsys.readouterr().out
    (standing.folder / "logs" / "supervisor.log").write_text("Traceback\nValueError: \x1b[31mof its own\n")
    assert supervisors_end(standing.folder) == "its supervisor has failed: ValueError: [31mof its own"


@LINUX
def test_a_disk_that_fills_during_the_start_is_said() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(state: StackState) -> None:
        if state.units[0].phase is Phase.STARTING:
            for pid in (state.supervisor.pid, os.getpid()):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))

    try:
        with pytest.raises(
            EngineError, match=r"does not come up: .* cannot be written: File too large\. Free some space"
        ):
            bring_up(stack(a=command("0", "0.5")), lambda *_: None, fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    standing = standing_of("s")
    assert standing
    assert not standing.state.supervisor.is_alive
    assert not any(unit.leader and unit.leader.is_alive for unit in standing.state.units)


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Make what stands of the stack ``s`` another user's, for as long as the test lasts."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("WITHSTAND_STATE", folder)

        def close() -> None:
            (Path(folder) / "stacks" / "s").chmod(0)
            if user == 0:
                os.seteuid(65534)  # to root no folder is closed

        yield close
        os.seteuid(user)
        (Path(folder) / "stacks" / "s").chmod(0o700)
        for standing in standings():
            take_down(standing)


def test_a_stack_of_another_user_is_passed_over_and_where_it_is_named_that_is_said(
    closed: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = up(stack(a=command()))
    assert exit_code_of(["ps"]) == 0
    capsys.readouterr()
    closed()
    assert standings() == []
    assert exit_code_of(["ps"]) == 0
    assert capsys.readouterr().out == "No stack is up.\n"
    for argv in (["ps", "s"], ["down", "s"], ["logs", "s"]):
        assert exit_code_of(argv) == EngineError.exit_code
        assert "The stack 's' is another user's" in capsys.readouterr().err
    with pytest.raises(EngineError, match=r"is another user's, whose folder .* is closed to you: only he can take it"):
        up(stack(a=command()))
    assert theirs.state.supervisor.is_alive


@LINUX
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_process_of_another_user_is_not_waited_for() -> None:
    with subprocess.Popen(["sleep", "600"]) as theirs:
        one = identity_of(theirs.pid)
        assert one
        os.setresuid(65534, 65534, 0)
        try:
            began_s = time.monotonic()
            assert end([one], 60.0) == [one]
            assert time.monotonic() - began_s < 30
        finally:
            os.setresuid(0, 0, 0)
        theirs.kill()


@LINUX
def test_a_relative_folder_where_the_current_one_is_gone_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with monkeypatch.context() as patched:
        patched.setenv("WITHSTAND_STATE", "rel")
        patched.setenv("WITHSTAND_CACHE", "rel")
        patched.chdir(gone)
        gone.rmdir()
        assert exit_code_of(["ps"]) == UsageError.exit_code
        with pytest.raises(UsageError, match=r"^WITHSTAND_CACHE = 'rel' is relative to the current folder, which is"):
            cache_folder()
    assert "WITHSTAND_STATE = 'rel' is relative to the current folder, which is gone" in capsys.readouterr().err
