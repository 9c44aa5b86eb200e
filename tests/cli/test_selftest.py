"""``withstand selftest`` as a user calls it."""

import json
import subprocess
import sys

import pytest


def selftest(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "withstand", "selftest", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_one_behaviour_in_full() -> None:
    done = selftest("--only", "crlf", "--answers", "3", "--format", "json")
    document = json.loads(done.stdout)
    assert done.returncode == (0 if document["ok"] else 3)
    (case,) = document["cases"]
    values = {check["what"]: (check["right"], check["ours"]) for check in case["checks"]}
    assert values["status"] == ("ok", "ok")
    assert values["output_tokens"] == (12, 12)
    assert values["output_events"] == (12, 12)
    assert case["answers"] == 3


def test_the_text_names_every_value_of_what_was_asked_for() -> None:
    done = selftest("--only", "error_midstream", "--answers", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert "status         right: stream_error, ours: stream_error" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("2 of 2 right, in ")


@pytest.mark.parametrize("options", [("--only", "nonsense"), ("--answers", "1"), ("--format", "xml")])
def test_what_makes_no_sense_is_refused(options: tuple[str, ...]) -> None:
    done = selftest(*options)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert options[1] in done.stderr


@pytest.mark.parametrize("verb", ["selftest", "truth-server"])
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_has_the_name_that_was_called(verb: str, option: str) -> None:
    command = [sys.executable, "-m", "withstand", verb, option]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: withstand {verb} ")


def test_a_behaviour_that_is_nearly_one_is_guessed() -> None:
    done = selftest("--only", "bytewize")
    assert done.returncode == 2
    assert "did you mean bytewise?" in done.stderr
    assert "--list-behaviours" in done.stderr
    assert len(done.stderr) < 160
