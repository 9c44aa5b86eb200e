"""Plans of many stages as a user runs them: cut anywhere and gone on with, kept within a budget, decided as they go."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cutting import begun, facts, stages_of, state_of, wait_until, withstand
from outcomes import code
from withstand.runs import RunFolder, RunState
from withstand.testing import Schedule, TruthServer

QUICK = Schedule(ttft_ms=5, itl_ms=1, tokens=4)
MATRIX = """
seed = 7
num_warmups = 2

[[stages]]
arrivals = { kind = "poisson", rate = [60, 90, 120, 150, 180] }
num_prompts = 6
[stages.workload]
options = { input_len = [4, 8, 12], output_len = 4, range_ratio = 0.4 }

[[stages]]
max_concurrency = [1, 2, 3]
num_prompts = 6
[stages.workload]
options = { input_len = [4, 8, 12, 16, 20], output_len = 4, range_ratio = 0.4 }
"""


def bodies(server: TruthServer) -> set[str]:
    """What was asked for, whole."""
    return {json.dumps(served.body) for served in server.truth() if served.body}


def test_thirty_stages_killed_anywhere_and_resumed_leave_what_a_whole_run_leaves(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(MATRIX)
    with TruthServer(QUICK, keep_bodies=True) as server:
        whole = withstand("plan.toml", "--base-url", server.base_url, "--output-dir", "whole", cwd=tmp_path)
        assert code(whole, tmp_path / "whole") == 0, whole.stderr
        asked = bodies(server)
    with TruthServer(QUICK, keep_bodies=True) as server:
        place, states = random.randint(1, 30), random.choice([("running", "done"), ("done",)])
        pause_s = random.choice([0, random.uniform(0, 0.3)])
        if place > 27:  # not so late that the run is over before it is killed
            states, pause_s = ("running", "done"), 0
        told = f"killed {pause_s:.3f} s after stage {place} was {states[0]}"
        with begun("plan.toml", "--base-url", server.base_url, "--output-dir", "cut", cwd=tmp_path):
            wait_until(lambda: state_of(tmp_path / "cut", place) in states)
            time.sleep(pause_s)
        time.sleep(0.5)  # the workers notice
        assert RunFolder.open(tmp_path / "cut").manifest.state is RunState.RUNNING, told
        again = withstand("--resume", "cut", cwd=tmp_path)
        assert code(again, tmp_path / "cut") == 0, f"{told}: {again.stderr}"
        assert "/30]" in again.stderr, "what is run again counts once"
        assert "Left of 30 stages: " in again.stderr, again.stderr
        asked_again = bodies(server)
    assert len(facts(tmp_path / "whole")) == 31
    left, wanted = facts(tmp_path / "cut"), facts(tmp_path / "whole")
    assert [name for name in wanted if left.get(name) != wanted[name]] == [], told
    assert left == wanted, told
    assert asked_again == asked, told


def test_a_stage_that_fails_in_the_middle_of_a_matrix_loses_nothing_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(MATRIX.replace("num_prompts = 6", "num_prompts = 40", 1))
    few = ("--set", "stages.0.arrivals.rate=[40,50,60]", "--set", "stages.0.workload.options.input_len=4")
    few += ("--set", "stages.1.max_concurrency=2", "--set", "stages.1.workload.options.input_len=[4,8]")
    with TruthServer(QUICK) as server:
        with begun("plan.toml", *few, "--base-url", server.base_url, "--output-dir", "r", cwd=tmp_path) as process:
            wait_until(lambda: state_of(tmp_path / "r", 2) == "running")
            time.sleep(0.3)
            kill(workers_of(process.pid))
            _, err = process.communicate(timeout=60)
        states = {s["name"]: s["state"] for s in stages_of(tmp_path / "r")}
        assert process.returncode == 3, err
        assert states == {
            "warm-up": "done",
            "rate-40": "done",
            "rate-50": "failed",
            "rate-60": "done",
            "in-4": "done",
            "in-8": "done",
        }
        assert "Stage rate-50: Worker 0 died" in err
        again = withstand("--resume", "r", cwd=tmp_path)
    assert code(again, tmp_path / "r") == 0, again.stderr
    assert {name: len(records) for name, records in facts(tmp_path / "r").items() if name != "warm-up"} == {
        "rate-40": 40,
        "rate-50": 40,
        "rate-60": 40,
        "in-4": 6,
        "in-8": 6,
    }


def workers_of(parent: int) -> list[int]:
    done = subprocess.run(["ps", "-wweo", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    return [int(pid) for pid, ppid, args in rows if int(ppid) == parent and "withstand.load.worker" in args]


def kill(pids: list[int]) -> None:
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def test_a_budget_is_kept_and_what_did_not_fit_is_said(tmp_path: Path) -> None:
    """Answers take long, so that stages last longer than they send."""
    (tmp_path / "plan.toml").write_text(
        "budget_s = 9\nnum_warmups = 0\n[workload]\noptions = { input_len = 4, output_len = 3 }\n"
        '[[stages]]\nname = "a"\nmax_concurrency = [1, 2, 3]\nduration_s = 2\n'
        '[[stages]]\nname = "b"\nmax_concurrency = 1\nnum_prompts = 1000\n'
    )
    with TruthServer(Schedule(ttft_ms=1500, itl_ms=100, tokens=3)) as server:
        began = time.monotonic()
        done = withstand("plan.toml", "--base-url", server.base_url, "--output-dir", "r", cwd=tmp_path)
        lasted_s = time.monotonic() - began
        again = withstand("--resume", "r", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "Planned: 4 stages, at least 6 s" in done.stderr
    states = [s["state"] for s in stages_of(tmp_path / "r")]
    assert states[0] == "done"
    assert "left_out" in states
    assert "is left out: it needs" in done.stderr
    assert "Partial: the budget left no time for a concurrency-" in done.stderr.replace("\n", " ")
    assert "Measure anew with more time, by a larger --budget," in " ".join(done.stderr.split())
    assert RunFolder.open(tmp_path / "r").manifest.spent_ns < 10.5e9
    assert lasted_s < 25
    assert "nothing is left to run" in again.stderr


def test_a_stage_without_an_end_by_time_gets_that_of_the_budget(tmp_path: Path) -> None:
    options = ("--num-prompts", "1000", "--max-concurrency", "1", "--input-len", "4", "--output-len", "4")
    with TruthServer(Schedule(ttft_ms=50, itl_ms=1, tokens=4)) as server:
        done = withstand("--base-url", server.base_url, *options, "--budget", "3s", "--output-dir", "r", cwd=tmp_path)
    assert code(done, tmp_path) == 0, done.stderr
    assert "was cut short: the budget ended it after" in " ".join(done.stderr.split())
    (_, stage) = stages_of(tmp_path / "r")
    assert stage["stage"]["duration_s"] < 3
    again = subprocess.run(
        [sys.executable, "-m", "withstand", "report", str(tmp_path / "r")], capture_output=True, text=True, check=True
    )
    (summed,) = json.loads((tmp_path / "r" / "summary.json").read_text())["stages"]
    assert summed["cut_short"] == stage["cut_short"]
    told = f"cut short: the budget ended it after {summed['attempted']:,} of 1,000 requests"
    for shown in (done.stdout, again.stdout, (tmp_path / "r" / "report.html").read_text()):
        assert told.lower() in " ".join(shown.split()).lower()


def test_the_rates_are_decided_from_what_was_seen_also_by_a_resumed_run(tmp_path: Path) -> None:
    """Two slots, 50 ms an answer: 40 a second are carried."""
    (tmp_path / "plan.toml").write_text(
        "num_warmups = 1\n[workload]\noptions = { input_len = 4, output_len = 2 }\n"
        '[[stages]]\nphase = "concurrency"\nmax_concurrency = [1, 4]\nduration_s = 1\n'
        "[[rates]]\nshares = [0.5, 2]\nduration_s = 1\n"
    )
    with TruthServer(Schedule(ttft_ms=40, itl_ms=10, tokens=2), slots=2) as server:
        with begun("plan.toml", "--base-url", server.base_url, "--output-dir", "r", cwd=tmp_path):
            wait_until(lambda: state_of(tmp_path / "r", 2) == "running")
        time.sleep(0.5)
        done = withstand("--resume", "r", cwd=tmp_path)
    assert done.returncode in {0, 3}, done.stderr
    decided = [s for s in stages_of(tmp_path / "r") if s["stage"]["phase"] == "sustained"]
    low, high = (s["stage"]["arrivals"]["rate"] for s in decided)
    assert 10 < low < 21
    assert high == pytest.approx(4 * low, rel=0.06)
    assert {s["state"] for s in decided} == {"done"}


def test_lengths_that_the_server_does_not_take_are_left_out_and_the_run_is_whole(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(
        "leave_out_too_long = true\nnum_warmups = 0\n[[stages]]\nnum_prompts = 2\n"
        "workload = { options = { input_len = [8, 900, 5000], output_len = 4 } }\n"
    )
    with TruthServer(QUICK, max_model_len=1024) as server:
        done = withstand("plan.toml", "--base-url", server.base_url, "--output-dir", "r", cwd=tmp_path)
        options = ("--set", "stages.0.workload.options.input_len=5000", "--output-dir", "none")
        none = withstand("plan.toml", "--base-url", server.base_url, *options, cwd=tmp_path)
    assert code(done, tmp_path / "r") == 0, done.stderr
    assert "Stage in-5000 is left out: its 5,004 tokens do not fit into the server's context of 1,024" in done.stderr
    assert [(s["name"], s["state"]) for s in stages_of(tmp_path / "r")] == [
        ("in-8", "done"),
        ("in-900", "done"),
        ("in-5000", "too_long"),
    ]
    assert none.returncode == 2
    assert "No stage fits into the server's context of 1,024 tokens" in none.stderr
