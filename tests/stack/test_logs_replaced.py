"""A service may do to its log what it likes: its supervisor goes on, and nobody else's file is touched."""

import os
import signal
import sys
from pathlib import Path

import pytest

from stacks import command, shell, stack, until, up
from withstand.cli.entry import exit_code_of
from withstand.errors import EngineError
from withstand.processes.cut import cut
from withstand.processes.log import opened
from withstand.processes.words import tail
from withstand.stack.standing import standing_of
from withstand.stack.state import UnitState
from withstand.stack.supervision import Phase

pytestmark = pytest.mark.usefixtures("state")
DEEDS = {"rm": "rm $L", "fifo": "rm $L; mkfifo $L", "link": "rm $L; ln -s $T $L", "folder": "rm $L; mkdir $L"}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the service of its keeper")
def test_a_service_that_replaces_its_log_takes_nobody_along(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs, precious = state / "stacks" / "s" / "logs", tmp_path / "precious"
    precious.write_text("precious\n")
    engines = {
        name: shell(f"L={logs / name}.log; T={precious}; {deed}; echo said by {name}", restart=True)
        for name, deed in DEEDS.items()
    }
    standing = up(stack(**engines, other=command()))
    for name in ("fifo", "folder"):
        assert exit_code_of(["logs", "s", name]) == EngineError.exit_code
        assert f"what stands in the place of its log, {logs / name}.log, is no file" in capsys.readouterr().err
    assert exit_code_of(["logs", "s"]) == 0
    for unit in standing.state.units:
        if unit.name in DEEDS and unit.leader:
            os.kill(unit.leader.pid, signal.SIGKILL)
    anew = {(name, Phase.READY) for name in ("rm", "fifo", "link", "other")}
    until(lambda: anew <= {(unit.name, unit.phase) for unit in units() if unit.restarts or unit.name == "other"})
    until(lambda: any("folder.log: Is a directory." in unit.reason for unit in units()))
    assert precious.read_text() == "precious\n"


def units() -> tuple[UnitState, ...]:
    """Of a stack whose supervisor lives."""
    standing = standing_of("s")
    assert standing
    assert standing.is_up
    return standing.state.units


def test_a_log_that_is_removed_or_replaced_is_read_and_bounded_all_the_same(tmp_path: Path) -> None:
    path, precious = tmp_path / "logs" / "a.log", tmp_path / "precious"
    precious.write_text("precious\n" * 1000)
    log = opened(path)
    os.write(log, b"line\n" * 1000)
    path.unlink()
    path.symlink_to(precious)
    cut(log, 1000, 100)
    assert os.fstat(log).st_size < 1000
    assert tail(log).endswith("line\nline\n")
    again = opened(path)
    os.write(again, b"anew\n")
    assert path.read_text() == "anew\n"
    assert precious.read_text() == "precious\n" * 1000
    path.unlink()
    os.mkfifo(path)
    assert tail(path) == ""
    os.close(opened(path))
    assert path.read_text() == ""
    path.parent.rename(tmp_path / "elsewhere")
    path.parent.symlink_to(tmp_path / "elsewhere")
    os.close(opened(path))
    assert not path.parent.is_symlink()
    path.unlink()
    path.mkdir()
    assert tail(path) == ""
    with pytest.raises(IsADirectoryError):
        opened(path)
    os.close(log)
    os.close(again)
