"""A supervisor that does not come to say who it is: its death is noticed, and one that is held up never comes up."""

import fcntl
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from stacks import command, stack, until, up
from withstand.cli.entry import exit_code_of
from withstand.errors import EngineError, UsageError
from withstand.processes.identity import identity_of
from withstand.stack.standing import standing_of, supervisors_of

pytestmark = pytest.mark.usefixtures("state")

DIES = "import os, sys\nos.fork() and os._exit(0)\nsys.exit('no breath')"
STOPS = """
import os, pathlib, signal, sys
from withstand.stack.supervisor import main
def stop():
    pathlib.Path({told!r}).write_text(str(os.getpid()))
    os.kill(os.getpid(), signal.SIGSTOP)
def fork_and_stop(fork=os.fork):
    if pid := fork():
        return pid
    stop()
    return 0
"""


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the supervisor runs instead of its module."""
    code = list[str]()
    for module in ("standing", "launching"):
        monkeypatch.setattr(
            f"withstand.stack.{module}.supervisors_arguments", lambda folder: ("-c", code[0], str(folder))
        )
    return code


def test_one_that_dies_at_birth_is_told_of_at_once_by_its_last_line(
    runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("withstand.stack.launching._BORN_S", 600.0)
    runs.append(DIES)
    with pytest.raises(EngineError, match=r"does not come up: its supervisor has failed: no breath\. Its logs"):
        up(stack(a=command()))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who runs what")
@pytest.mark.parametrize("where", ["stop()", "os.fork = fork_and_stop"])
def test_one_that_is_held_up_never_comes_up_after_an_interrupted_up(
    where: str, runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def interrupted() -> Iterator[Sequence[int]]:
        yield [signal.SIGINT]

    monkeypatch.setattr("withstand.stack.local.deferred", interrupted)
    runs.append(STOPS.format(told=str(told := tmp_path / "told")) + where + "\nmain()")
    with pytest.raises(EngineError, match="The supervisor of the stack 's' does not start; see"):
        up(stack(a=command()))
    until(told.exists)
    if left := identity_of(int(told.read_text())):
        os.kill(left.pid, signal.SIGCONT)
    assert not supervisors_of(tmp_path / "state" / "stacks" / "s")
    assert standing_of("s") is None


@pytest.mark.parametrize("argv", [["down", "s"], ["down", "s.toml"], ["down", "--all"]])
def test_the_logs_of_one_that_died_at_birth_stay_until_down(
    argv: list[str], runs: list[str], state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(state.parent)
    Path("s.toml").write_text("[engines.a]\nkind = 'command'\nargs = ['a']\nserved_as = 'm'\n")
    runs.append(DIES)
    with pytest.raises(EngineError, match="no breath"):
        up(stack(a=command()))
    logs = state / "stacks" / "s" / "logs"
    for verb in ("logs", "ps"):
        assert exit_code_of([verb, "s"]) == UsageError.exit_code
        assert f"The stack 's' did not come up; its logs: {logs}; withstand down s." in capsys.readouterr().err
    assert "no breath" in (logs / "supervisor.log").read_text()
    assert exit_code_of(argv) == 0
    assert capsys.readouterr().out == "Removed the logs of s, which did not come up.\n"
    assert not logs.parent.parent.exists()


def test_down_leaves_alone_what_is_just_prepared_or_no_stacks(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stacks = state / "stacks"
    (stacks / "s" / "logs").mkdir(parents=True)
    (stacks / "other").mkdir()
    (state / "elsewhere" / "logs").mkdir(parents=True)
    lock = os.open(stacks, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert exit_code_of(["down", "s"]) == EngineError.exit_code
    assert "Another stack is being prepared, perhaps of that name" in capsys.readouterr().err
    os.close(lock)
    for name in ("other", "../elsewhere"):
        assert exit_code_of(["down", name]) == UsageError.exit_code
    assert (state / "elsewhere" / "logs").exists()
    assert (stacks / "s" / "logs").exists()
    assert exit_code_of(["down", "s"]) == 0
    assert [path.name for path in stacks.iterdir()] == ["other"]
