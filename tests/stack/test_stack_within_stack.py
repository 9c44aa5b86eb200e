"""A stack that something within a service of another one has brought up, or takes down, is nobody's but its own."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from stacks import SERVER, command, shell, stack, until, up
from withstand.cli.entry import exit_code_of
from withstand.stack.standing import Standing, standing_of
from withstand.stack.state import MARK, outside

pytestmark = [
    pytest.mark.usefixtures("state"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of marks and orphans"),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "inner.toml"
    args = f"[{sys.executable!r}, {SERVER!r}, '{{port}}']"
    path.write_text(f"[engines.e]\nkind = 'command'\nargs = {args}\nserved_as = 'm'\n")
    return path


def inner() -> Standing:
    found = standing_of("inner")
    assert found
    return found


def stands() -> bool:
    unit = inner().state.units[0]
    return bool(inner().is_up and unit.leader and unit.leader.is_alive)


def test_a_stack_that_a_service_has_brought_up_outlives_that_ones_stack(file: Path) -> None:
    up(stack(a=shell(f"{sys.executable} -m withstand up {file} --quiet || exit 1")))
    scratch = Path(inner().state.scratch or "")
    assert scratch.parent == Path(tempfile.gettempdir())
    assert exit_code_of(["down", "s"]) == 0
    assert stands()
    assert scratch.is_dir()
    assert exit_code_of(["down", "inner"]) == 0


def test_a_stack_that_a_service_has_brought_up_outlives_that_service(file: Path) -> None:
    standing = up(stack(a=shell(f"{sys.executable} -m withstand up {file} --quiet || exit 1"), b=command()))
    leader = standing.state.units[0].leader
    assert leader
    os.kill(leader.pid, signal.SIGKILL)
    until(lambda: [unit.name for unit in _now("s").state.units if unit.phase.value == "failed"] == ["a"])
    assert stands()


def _now(name: str) -> Standing:
    found = standing_of(name)
    assert found
    return found


def test_who_takes_down_the_stack_whose_mark_he_has_is_not_ended_with_it() -> None:
    standing = up(stack(a=command()))
    script = f"{sys.executable} -m withstand down s; echo and goes on"
    done = subprocess.run(
        ["sh", "-c", script], env=os.environ | {MARK: standing.state.mark}, capture_output=True, text=True, check=False
    )
    assert done.stdout == "s is down.\nand goes on\n"
    assert not standing.folder.exists()


def test_the_environment_outside_has_no_mark_and_the_folder_for_temporary_files_that_was() -> None:
    mark = "0123456789abcdef"
    assert outside({MARK: mark, "TMPDIR": "/t/withstand-0123456789ab", "A": "1"}) == {"TMPDIR": "/t", "A": "1"}
    assert outside({MARK: mark, "TMPDIR": "/own"}) == {"TMPDIR": "/own"}
    assert outside({"TMPDIR": "/t/withstand-0123456789ab"}) == {"TMPDIR": "/t/withstand-0123456789ab"}
