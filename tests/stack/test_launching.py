"""A supervisor that does not come to say who it is: its death is noticed, and one that is held up never comes up."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from stacks import command, stack, until, up
from withstand.errors import EngineError
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
