"""``withstand find-limit`` as a user has it: a server with so many slots, a promise, a limit; cut, and gone on with."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from withstand.runs import RunFolder, RunState
from withstand.testing import Schedule, TruthServer

SERVER = Schedule(ttft_ms=10, itl_ms=3, tokens=11)
"""40 ms an answer: with two slots 50 requests a second at the most."""
FIND = (sys.executable, "-m", "withstand", "find-limit")
QUICK = ("--probe", "10", "--set", "workload.options.input_len=8", "--set", "find_limit.rest_s=0.1")
PROMISE = ("--slo", "ttft:p50:30", "--start", "20", "--precision", "100%")


def find_limit(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*FIND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def test_the_limit_of_a_server_lies_in_the_interval(tmp_path: Path) -> None:
    with TruthServer(SERVER, slots=2) as server:
        target = ("--base-url", server.base_url, "--output-len", "11")
        done = find_limit(*target, *PROMISE, *QUICK, "--json", "--output-dir", "r", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    limit = json.loads(done.stdout)
    assert limit["interval"]["low"] >= 20
    assert limit["interval"]["high"] <= 80
    assert limit["interval"]["low"] <= limit["load"] <= limit["interval"]["high"]
    tried = {probe["load"]: probe["look"]["standing"] for probe in limit["probes"]}
    assert tried[20] == "holds"
    assert tried[max(tried)] in {"breaks", "grows"}
    entries = RunFolder.open(tmp_path / "r").manifest.stages
    assert {e.state for e in entries} == {RunState.DONE}
    assert [e for e in entries if e.ended_by == "p50 TTFT ≤ 30 ms is broken"]
    shown = subprocess.run(
        [sys.executable, "-m", "withstand", "report", "r"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "req/s, between" in shown.stdout


def test_where_one_user_does_not_get_what_is_promised_nothing_is_searched(tmp_path: Path) -> None:
    with TruthServer(SERVER) as server:
        target = ("--base-url", server.base_url, "--output-len", "11")
        done = find_limit(*target, "--slo", "ttft:p95:5", *QUICK, "--output-dir", "r", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "Nothing can be promised: p95 TTFT ≤ 5 ms is broken for one user at a time." in done.stdout


def test_a_search_that_was_killed_goes_on(tmp_path: Path) -> None:
    with TruthServer(SERVER, slots=2) as server:
        target = ("--base-url", server.base_url, "--output-len", "11")
        command = [*FIND, *target, *PROMISE, *QUICK, "--output-dir", str(tmp_path / "r")]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _wait_for_a_probe(tmp_path / "r", process)
        process.kill()
        process.wait()
        before = [e.name for e in RunFolder.open(tmp_path / "r").manifest.stages if e.state is RunState.DONE]
        done = find_limit("--resume", "r", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = [e.name for e in RunFolder.open(tmp_path / "r").manifest.stages if e.state is RunState.DONE]
    assert [name for name in names if name.startswith("rate-")][:1] == ["rate-20"]
    assert names.count("rate-20") == 1
    assert len(names) > len(before)
    assert json.loads(done.stdout)["interval"]["high"] is not None


def _wait_for_a_probe(folder: Path, process: "subprocess.Popen[bytes]") -> None:
    """Until the first load is known and the second is under way."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None
        manifest = folder / "run.json"
        if manifest.exists() and '"name": "rate-40"' in manifest.read_text():
            return
        time.sleep(0.05)
    raise AssertionError("no second load was tried")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "give --slo ttft:p95:500"),
        (("--slo", "ttft:500"), "'ttft:500' is no promise; write ttft:p95:500"),
        (("--slo", "success:101%"), "is no promise"),
        (("--slo", "ttft:p95:500", "--precision", "x"), "--precision: 'x' is no percentage"),
        (("--slo", "ttft:p95:500", "--budget", "soon"), "--budget soon: give a time with its unit"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(arguments: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    done = find_limit("--base-url", "http://127.0.0.1:1", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_run_ends_a_stage_once_its_number_is_known_as_exactly_as_asked(tmp_path: Path) -> None:
    jittery = Schedule(ttft_ms=10, ttft_jitter="exp", itl_ms=1, tokens=3)
    with TruthServer(jittery) as server:
        load = ("--request-rate", "200", "--num-prompts", "6000", "--precision", "ttft:mean:15%")
        command = [sys.executable, "-m", "withstand", "run", "--base-url", server.base_url, *load, "--output-dir", "r"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in {0, 3}, done.stderr
    entry = RunFolder.open(tmp_path / "r").manifest.stages[-1]
    assert entry.state is RunState.DONE
    assert entry.ended_by == "mean TTFT within 15 %"
    (stage,) = json.loads((tmp_path / "r" / "summary.json").read_text())["stages"]
    assert 50 <= stage["completed"] < 3000
    assert stage["failed"] <= 10  # due in the last moment, and not sent any more


def test_a_closed_loop_that_ends_when_its_load_is_known_has_not_run_out_of_prompts(tmp_path: Path) -> None:
    with TruthServer(SERVER, slots=2) as server:
        target = ("--base-url", server.base_url, "--output-len", "11")
        search = ("--slo", "ttft:p50:30", "--axis", "concurrency", "--start", "8", "--precision", "100%")
        done = find_limit(*target, *search, *QUICK, "--budget", "15s", "--output-dir", "r", cwd=tmp_path)
    assert "concurrency-8: p50 TTFT ≤ 30 ms is broken" in done.stderr
    assert "no more prompts" not in done.stderr
