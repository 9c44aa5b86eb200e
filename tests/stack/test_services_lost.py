"""A service that dies while a run measures its stack: the folder, the doubts and every report tell of it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from withstand.processes.identity import identity_of
from withstand.stack.local import take_down
from withstand.stack.standing import standing_of, standings
from withstand.stack.state import StackState

ENGINE = str(Path(__file__).parents[1] / "support" / "vllm_like.py")
PATIENCE_S = 120.0
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose child is whose")


def engine(**fields: Any) -> dict[str, Any]:
    return {"kind": "command", "args": [sys.executable, ENGINE, "{port}"], "served_as": "m", **fields}


def tree(seconds: float, **engines: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "lossy",
        "engines": engines,
        "plan": {
            "target": {"service": "a"},
            "num_warmups": 1,
            "workload": {"dataset": "random", "options": {"input_len": 8, "output_len": 8}},
            "stages": [{"name": "s", "arrivals": {"kind": "constant", "rate": 20}, "duration_s": seconds}],
        },
    }


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path / "state"))
    yield
    for standing in standings():
        take_down(standing)


def until(condition: Callable[[], object]) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_s
        time.sleep(0.05)


def begun(folder: Path, told: dict[str, Any]) -> "subprocess.Popen[str]":
    """A run of the stack that has its first records."""
    file = folder / "lossy.json"
    file.write_text(json.dumps(told))
    command = [sys.executable, "-m", "withstand", "run", str(file), "--quiet", "--output-dir", str(folder / "run")]
    run = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: run.poll() is not None or any(map(measured, (folder / "run").glob("records.w*.jsonl"))))
    return run


def measured(records: Path) -> bool:
    return b'"stage":1' in records.read_bytes()


def state_now() -> StackState:
    standing = standing_of("lossy")
    assert standing
    return standing.state


def kill(name: str, what: str = "leader") -> None:
    unit = next(unit for unit in state_now().units if unit.name == name)
    os.kill(getattr(unit, what).pid, signal.SIGKILL)


@LINUX
def test_each_report_names_the_services_that_were_lost(tmp_path: Path) -> None:
    """``b`` is not asked, and takes nothing from the numbers; it comes back after a second."""
    run = begun(tmp_path, tree(4, a=engine(), b=engine(restart=True)))
    kill("a", "keeper")
    kill("b")
    out, err = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 3, out + err
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    [stage] = summary["stages"]
    [doubt] = [doubt for doubt in stage["doubts"] if doubt["kind"] == "service_lost"]
    assert doubt["blocking"]
    assert "a was away for" in doubt["sentence"]
    assert "killed by SIGKILL" in doubt["sentence"]
    [note] = summary["notes"]
    assert note.startswith("stack: b was away from ")
    page = " ".join((tmp_path / "run" / "report.html").read_text().split())
    assert "a was away for" in page
    assert "Stack: b was away from" in page
    told = " ".join(out.split())
    assert "a was away for" in told
    assert "stack: b was away from" in told
    outages = json.loads((tmp_path / "run" / "run.json").read_text())["outages"]
    assert {(one["service"], one.get("asked", True)) for one in outages} == {("a", True), ("b", False)}
    assert [one["back_ns"] is None for one in outages] == [True, False]
    audit = [sys.executable, "-m", "withstand", "audit", "--format", "json", str(tmp_path / "run")]
    assert '"service_lost"' in subprocess.run(audit, capture_output=True, text=True, check=False).stdout


@LINUX
def test_a_stack_that_loses_its_supervisor_is_lost(tmp_path: Path) -> None:
    run = begun(tmp_path, tree(2, a=engine()))
    supervisor = state_now().supervisor
    os.kill(supervisor.pid, signal.SIGKILL)
    out, err = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 3, out + err
    assert identity_of(supervisor.pid) != supervisor
    [stage] = json.loads((tmp_path / "run" / "summary.json").read_text())["stages"]
    [doubt] = [doubt for doubt in stage["doubts"] if doubt["kind"] == "service_lost"]
    assert "the stack has lost its supervisor" in doubt["sentence"]


@LINUX
def test_why_a_service_went_is_told_though_its_end_was_seen_before_that_was_known(tmp_path: Path) -> None:
    """Its child does not heed SIGTERM, so that its keeper waits for that."""
    args = ["sh", "-c", f"(trap '' TERM; exec sleep 600) & exec {sys.executable} {ENGINE} $PORT"]
    run = begun(tmp_path, tree(6, a=engine(), b=engine(args=args, stop_s=3)))
    kill("b")
    run.communicate(timeout=PATIENCE_S)
    [outage] = json.loads((tmp_path / "run" / "run.json").read_text())["outages"]
    assert "killed by SIGKILL" in outage["reason"]
