"""stdout and stderr as they may be: of few characters, full, left, or of no width."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from terminals import OnTerminal
from withstand.testing import Schedule, TruthServer

WITHSTAND = (sys.executable, "-m", "withstand")
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
LATIN = {"PYTHONIOENCODING": "latin-1"}
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="Linux has a device that is always full")


@pytest.fixture(scope="module")
def server() -> Iterator[TruthServer]:
    with TruthServer(Schedule(ttft_ms=2, itl_ms=1, tokens=3)) as server:
        yield server


def measure(server: TruthServer, folder: Path, *more: str) -> tuple[str, ...]:
    sizes = ("--num-prompts", "6", "--input-len", "5", "--output-len", "3")
    return (*WITHSTAND, "run", "--base-url", server.base_url, *sizes, "--output-dir", str(folder), "--quiet", *more)


@pytest.fixture(scope="module")
def run(server: TruthServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("runs") / "r"
    subprocess.run(measure(server, folder), stdout=subprocess.DEVNULL, check=False)
    return str(folder)


def told(command: Sequence[str], env: dict[str, str]) -> bytes:
    done = subprocess.run(command, capture_output=True, env={**os.environ, **env}, check=False)
    assert b"fault of withstand" not in done.stderr
    return done.stdout


def full(*command: str) -> subprocess.CompletedProcess[str]:
    with FULL.open("w") as stdout:
        return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.parametrize("env", [ASCII, LATIN])
@pytest.mark.parametrize("verb", ["audit", "report", "compare"])
def test_no_mark_becomes_another_where_few_characters_are_known(verb: str, env: dict[str, str], run: str) -> None:
    command = (*WITHSTAND, verb, *([run] * (1 + (verb == "compare"))))
    known = told(command, {"PYTHONIOENCODING": "utf-8"}).decode()
    few = told(command, env).decode("latin-1")
    assert known.count("✗") + known.count("✓") + known.count("→") > 0
    assert few.count("?") == known.count("?")
    assert few.count("->") >= known.count("→")


def test_what_has_no_stand_in_is_a_question_mark() -> None:
    marks = ascii("✓✗→\u2013…≤±µ\u202f·│═╬█▁ 漢\udc80")
    code = f"from withstand.cli.streams import usable; import sys; usable(sys.stdout).write({marks})"
    assert told((sys.executable, "-c", code), ASCII) == b"+x->-...<=+/-u -|-+#_ ??"


@needs_full
@pytest.mark.parametrize(
    "typed", ["schema plan", "ps", "--help", "--version", "run --help", "audit", "report", "report --format json"]
)
def test_a_result_that_cannot_be_written_is_one_sentence(typed: str, run: str) -> None:
    verb, *rest = typed.split()
    done = full(*WITHSTAND, verb, *([run] if verb in {"audit", "report"} else []), *rest)
    assert done.returncode == 3
    assert done.stderr.startswith("withstand: The result cannot be written to stdout: No space left on device.")
    assert done.stderr.count("\n") == 1


@needs_full
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_run_whose_result_cannot_be_written_goes_on_and_says_who_has_it(
    more: tuple[str, ...], server: TruthServer, tmp_path: Path
) -> None:
    done = full(*measure(server, tmp_path / "r", *more))
    assert done.returncode == 3
    assert f"cannot be written to stdout: No space left on device; the folder {tmp_path / 'r'} has it." in done.stderr
    assert (tmp_path / "r" / "summary.json").exists()


@needs_full
def test_a_full_stderr_stops_nothing() -> None:
    with FULL.open("w") as stderr:
        done = subprocess.run((*WITHSTAND, "--nonsense"), stderr=stderr, check=False)
    assert done.returncode == 2


def test_a_reader_who_is_slow_and_does_not_block_gets_all() -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with subprocess.Popen((*WITHSTAND, "schema"), stdout=write_end, stderr=subprocess.PIPE) as process:
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            assert process.stderr is not None
            text = pipe.read()
    assert process.returncode == 0
    assert text == told((*WITHSTAND, "schema"), {})


@pytest.mark.parametrize("columns", ["0", "1", "2", "3", "-5", "²", "9" * 5000])
@pytest.mark.parametrize("verb", ["audit", "report", "compare"])
def test_a_width_that_none_can_have_is_no_fault(verb: str, columns: str, run: str) -> None:
    text = told((*WITHSTAND, verb, *([run] * (1 + (verb == "compare")))), {"COLUMNS": columns}).decode()
    assert min(len(line) for line in text.splitlines() if line) < max(map(len, text.splitlines())) <= 80
    assert max(map(len, text.splitlines())) >= 15


@pytest.mark.parametrize("env", [{}, {"COLUMNS": "0", "LINES": "0"}])
def test_a_terminal_without_a_size_is_measured_on(env: dict[str, str], server: TruthServer, tmp_path: Path) -> None:
    command = [word for word in measure(server, tmp_path / "r") if word != "--quiet"]
    with OnTerminal(command, columns=0, rows=0, env=env) as terminal:
        assert terminal.wait() in {0, 3}
    assert "fault of withstand" not in terminal.text
    assert "Report: " in terminal.text
