"""A mistake on the command line is one sentence of the same form, whichever program of ours was called."""

import subprocess
import sys

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
