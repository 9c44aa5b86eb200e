"""The command as a process: exit codes, one sentence a fault, quiet ends."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import pytest

from withstand.cli import entry
from withstand.cli.entry import exit_code_of
from withstand.cli.verbs import VERBS, withstand
from withstand.errors import SpecError, TargetError, WithstandError


def call(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "withstand", *argv], capture_output=True, text=True, check=False)


def raising(monkeypatch: pytest.MonkeyPatch, e: BaseException) -> None:
    """A verb ``demo`` that does nothing but raise."""

    @click.command("demo")
    def verb() -> None:
        raise e

    monkeypatch.setattr(withstand, "get_command", lambda *_: verb)


def test_help_and_version() -> None:
    for argv in ((), ("--help",), ("-h",)):
        done = call(*argv)
        assert (done.returncode, done.stderr) == (0, "")
        assert all(name in done.stdout for name in VERBS)
    assert re.fullmatch(r"withstand \d+\.\d+\.\d+\n", call("--version").stdout)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (("nonsense",), "No such verb 'nonsense'"),
        (("--nonsense",), "No such option"),
        (("schema", "nonsense"), "schema: 'nonsense' is unknown; choose one of plan, stack, record, plans"),
    ],
)
def test_bad_usage_is_one_sentence_and_exit_2(argv: tuple[str, ...], sentence: str) -> None:
    done = call(*argv)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("withstand: ")
    assert sentence in done.stderr
    assert "--help` lists what there is." in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("e", "code"), [(SpecError("A field is wrong."), 2), (TargetError("It is not there."), 3)])
def test_our_errors_are_their_text(
    e: WithstandError, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, e)
    assert exit_code_of(["demo"]) == code
    assert capsys.readouterr() == ("", f"withstand: {e}\n")


def test_a_fault_of_ours_is_one_sentence_and_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    raising(monkeypatch, ZeroDivisionError("by zero\nand more"))
    assert exit_code_of(["demo"]) == 3
    (log,) = tmp_path.iterdir()
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "ZeroDivisionError: by zero)" in said
    assert str(log) in said
    assert "Traceback (most recent call last)" in log.read_text("utf-8")


def test_a_fault_of_ours_on_a_full_disk_is_still_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    raising(monkeypatch, ZeroDivisionError("by zero"))
    assert exit_code_of(["demo"]) == 3
    assert "cannot be kept" in capsys.readouterr().err


@pytest.mark.parametrize("e", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_is_quiet(
    e: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, e)
    assert exit_code_of(["demo"]) == 130
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_while_the_command_line_is_still_read_is_quiet(tmp_path: Path) -> None:
    (tmp_path / "msgspec.py").write_text("raise KeyboardInterrupt")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from withstand.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "run"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_interrupt_before_the_verb_is_called_is_quiet() -> None:
    begin = "import withstand.cli.entry as e; e.usable = lambda _: signal.raise_signal(signal.SIGINT)"
    code = f"import signal; {begin}; from withstand.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "run"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_main_leaves_with_the_exit_code() -> None:
    with pytest.raises(SystemExit) as left:
        entry.main(["--nonsense"])
    assert left.value.code == 2


def test_a_reader_that_has_left_is_no_fault() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "withstand", "schema"]
    with subprocess.Popen(command, stdout=write_end, stderr=subprocess.PIPE, text=True) as done:
        os.close(write_end)
        assert done.stderr is not None
        assert done.stderr.read() == ""
    assert done.returncode == 0


def test_ctrl_c_ends_the_truth_server_without_a_word_of_python(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "withstand", "truth-server", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        assert "http://" in server.stdout.readline()
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=20)
    assert "Traceback" not in said


# The verbs' table.


@pytest.mark.parametrize("name", VERBS)
def test_the_tables_help_is_the_verbs_own(name: str) -> None:
    command = withstand.get_command(click.Context(withstand), name)
    assert command is not None
    assert command.name == name
    assert (command.help or "").startswith(VERBS[name][1])


def test_help_imports_no_verb() -> None:
    code = """
import sys
from withstand.cli.entry import exit_code_of
exit_code_of(["--help"])
loaded = [m for m in sys.modules if m.startswith("withstand.")]
print(*loaded, sep=",", file=sys.stderr)
print(*[m for m in ("rich", "msgspec", "asyncio", "ssl", "socket") if m in sys.modules], sep=",", file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours, heavy = done.stderr.splitlines()
    assert {m.split(".")[1] for m in ours.split(",")} == {"cli", "errors"}
    assert heavy == ""


LONG = "a" * 400


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        (("report", LONG), 2, "is no run folder"),
        (("compare", LONG, LONG), 2, "is no run folder"),
        (("audit", LONG), 2, "is no run folder"),
        (("ab", "http://127.0.0.1:1", LONG), 2, "is neither a URL"),
        (("ab", "http://127.0.0.1:1", "http://127.0.0.1:1", "--output-dir", LONG), 3, "File name too long"),
        (("run", "--base-url", "http://127.0.0.1:1", "--output-dir", LONG), 3, "File name too long"),
        (("run", "--base-url", "https://127.0.0.1:1", "--cacert", LONG), 2, "is missing"),
        (("run", "--base-url", "http://127.0.0.1:1", "--output-dir", ""), 2, "an empty path names nothing"),
    ],
)
def test_a_name_that_no_file_can_have_is_one_sentence(argv: tuple[str, ...], code: int, sentence: str) -> None:
    done = call(*argv)
    assert done.returncode == code, done.stderr
    assert sentence in done.stdout + done.stderr
    assert "fault of withstand" not in done.stderr


def test_a_name_cannot_act_on_the_terminal() -> None:
    done = call("ab", "\x1b[31mred=http://127.0.0.1:1", "other=http://127.0.0.1:1")
    assert done.returncode == 3
    assert "[31mred" in done.stderr
    assert "\x1b" not in done.stderr


URL = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    "typed", [("run", URL), ("find-limit", URL), ("up", URL), ("report", URL), ("audit", URL), ("compare", URL, URL)]
)
def test_a_url_in_the_place_of_a_file_is_told_where_it_belongs(
    typed: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of([*typed]) == 2
    told = capsys.readouterr().err
    assert f"{URL} is a URL" in told
    assert f"--base-url {URL}" in told


def test_nobody_there_is_told_without_an_option_that_was_not_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["ab", f"a={URL}", f"b={URL}"]) == 3
    told = capsys.readouterr().err
    assert "a: No connection to 127.0.0.1:9: connection refused. Is the server up, and the URL right?" in told


@pytest.mark.parametrize("verb", ["report", "audit", "compare"])
def test_what_is_not_there_is_a_mistake_of_usage_for_every_verb(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "nowhere")
    assert exit_code_of([verb, missing, missing]) == 2
    assert "there is nothing of this name" in capsys.readouterr().err
