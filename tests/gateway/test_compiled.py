"""What was compiled of the gateway is of the sources that are here, and does what they say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import withstand.gateway
from withstand.compiled import FOLDER, folder_of_compiled, list_of_sources, sources

HERE = Path(__file__).parent
PACKAGE = Path(withstand.gateway.__file__)
OFF = os.environ | {"WITHSTAND_COMPILED": "off"}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.py").write_text(f"NAME = {name!r}\n")
    (tmp_path / FOLDER).mkdir()
    list_of_sources(tmp_path).write_text(sources(tmp_path, ["one", "two"]))
    return tmp_path


def test_compiled_modules_are_those_of_the_sources_that_are_here(package: Path) -> None:
    beside = str(package / "__init__.py")
    assert folder_of_compiled(beside) == str(package / FOLDER)
    (package / "three.py").write_text("")
    assert folder_of_compiled(beside) == str(package / FOLDER)
    text = (package / "two.py").read_text()
    (package / "two.py").write_text("")
    assert folder_of_compiled(beside) is None
    (package / "two.py").write_text(text)
    assert folder_of_compiled(beside) == str(package / FOLDER)
    (package / "one.py").unlink()
    assert folder_of_compiled(beside) is None


def test_nothing_is_compiled_where_nothing_says_of_what(package: Path) -> None:
    list_of_sources(package).unlink()
    assert folder_of_compiled(str(package / "__init__.py")) is None


def test_the_interpreter_can_be_asked_for(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WITHSTAND_COMPILED", "off")
    assert folder_of_compiled(str(package / "__init__.py")) is None


def _compiled_here() -> None:
    if folder_of_compiled(str(PACKAGE)) is None:
        pytest.skip(
            "nothing compiled of these sources: WITHSTAND_COMPILED=on pip install -e . where there is a compiler"
        )


def test_a_request_passes_what_was_compiled_unless_the_interpreter_is_asked_for() -> None:
    _compiled_here()
    program = [sys.executable, "-c", "from withstand.gateway import door; print(door.__file__)"]
    assert subprocess.run(program, capture_output=True, text=True, check=True).stdout.strip().endswith(".so")
    told = subprocess.run(program, capture_output=True, text=True, check=True, env=OFF).stdout.strip()
    assert told == str(PACKAGE.with_name("door.py"))


def test_the_interpreter_does_the_same(tmp_path: Path) -> None:
    """The other tests have run with what was compiled."""
    _compiled_here()
    files = [str(HERE / f"test_{name}.py") for name in ("bytes", "familiar", "faults", "framing")]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'base'}", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=OFF, cwd=HERE.parents[1])
    assert done.returncode == 0, done.stdout[-5000:]
