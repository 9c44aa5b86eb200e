"""A mistake on the command line is one sentence of the same form, whichever program of ours was called."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = ("--model", "m", "--engine", "http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("gateway", "--modle", "x"), "No such option --modle (did you mean --model?)"),
        (("gateway", *GOOD, "--workers", "many"), "'many' is no whole number; give one, such as 8"),
        (("gateway", *GOOD, "--workers", "0"), "0 must be at least 1 and at most 64"),
        (("gateway", "keys"), "Say which verb. `withstand gateway keys --help`"),
        (("gateway", "keys", "nwe"), "No such verb 'nwe' (did you mean new?)"),
        (("gateway", "keys", "new", "me", "--modle", "x"), "No such option --modle (did you mean --model?)"),
        (("gateway", "keys", "list"), "Missing argument 'CONFIG'"),
        (("gateway", "keys", "list", "no.toml"), "no.toml cannot be read"),
        (("gateway", "chek", "gw.toml"), "No such verb 'chek' (did you mean check?)"),
        (("gateway", "check"), "Missing argument 'FILE'"),
        (("agent", "--modle", "x"), "No such option --modle (did you mean --model?)"),
        (("agent", "check"), "Missing argument 'FILE'"),
        (("truth-server", "--behavoiur", "x"), "No such option --behavoiur (did you mean --behaviour"),
        (("selftest", "--olny", "x"), "No such option --olny (did you mean --only?)"),
        (("selftest", "--answers", "x"), "'x' is no whole number"),
        (("ui", "--port", "70000"), "70000 must be at least 0 and at most 65535"),
        (("find-limit", "--start", "abc"), "'abc' is no number; give one, such as 500"),
        (("find-limit", "--start", "0"), "0.0 must be above 0"),
        (("ab", "--blocks", "two"), "'two' is no whole number"),
        (("run", "--num-prompts"), "requires an argument. `withstand run --help` lists"),
        (("schema", "--nonsense"), "`withstand schema --help` lists"),
        (
            ("run", "--max-concurrency", "1", "--max-concurrency=2"),
            "2 times; give it once, several values with commas.",
        ),
        (("run", "--set", "workload.options.input_len=abc"), "What was typed is wrong: Expected a whole number"),
    ],
)
def test_it_says_what_is_wrong_and_what_was_meant(argv: tuple[str, ...], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "withstand", *argv], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("withstand: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    gone = f"cd {tmp_path} && mkdir gone && cd gone && rmdir ../gone && exec"
    command = f"{gone} {sys.executable} -m withstand run --base-url http://127.0.0.1:1 --num-prompts 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert "the current folder is gone. Change to one that is there" in done.stderr


def test_a_stack_that_cannot_be_kept_names_the_folders_variable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "s.toml").write_text('[engines.a]\nkind = "sim"\n')
    command = [sys.executable, "-m", "withstand", "up", str(tmp_path / "s.toml")]
    env = {**os.environ, "WITHSTAND_STATE": str(tmp_path / "file")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert done.returncode == 3
    assert "or name another folder by WITHSTAND_STATE." in done.stderr
    assert "measured" not in done.stderr
