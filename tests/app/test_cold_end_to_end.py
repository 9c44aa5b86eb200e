"""Stages that begin with a cold server: made so by a pause or a new start, and what may be wrong with it."""

import json
import sys
from pathlib import Path

import pytest

from cutting import withstand
from outcomes import code
from withstand.stack.ports import free_port
from withstand.testing import Schedule, TruthServer

SMALL = str(Path(__file__).parents[1] / "support" / "small_engine.py")
PLAN = ("--plan", "cold-start", "--set", "cycles=2")
FEW = ("--set", "workload.options.input_len=4", "--set", "workload.options.output_len=4")


def cold_of(folder: Path) -> dict[str, object]:
    return json.loads((folder / "summary.json").read_text())["cold_start"]


def test_a_pause_is_kept_before_each_cold_stage(tmp_path: Path) -> None:
    with TruthServer(Schedule(ttft_ms=5, itl_ms=1, tokens=4), keep_bodies=True) as server:
        more = ("--set", "cold.pause_s=0.3", "--base-url", server.base_url, "--output-dir", "r")
        done = withstand(*PLAN, *FEW, *more, cwd=tmp_path)
        asked_ns = [served.received_ns for served in server.truth() if served.body]
    told = " ".join((done.stdout + done.stderr).split())
    assert code(done, tmp_path / "r") == 0, told
    assert len(asked_ns) == 1 + 2 * (1 + 4)
    for place in (1, 6):
        assert asked_ns[place] - asked_ns[place - 1] >= 0.3e9
    cold = cold_of(tmp_path / "r")
    assert (cold["by"], cold["cold"]["n"], cold["warm"]["n"]) == ("pause", 2, 8)
    assert "cold start (taken for cold after a pause): TTFT cold p50" in told
    assert "nobody told whether the server was cold" in told


def test_the_plans_own_server_is_started_anew_and_its_start_counts(tmp_path: Path) -> None:
    port = free_port()
    plan = (
        f"[target]\nbase_url = 'http://127.0.0.1:{port}'\nmodel = 'm'\n"
        f"[target.serve]\nargv = [{sys.executable!r}, '-S', {SMALL!r}, '{port}', '.']\nready = '/health'\n"
        "[workload.options]\ninput_len = 4\noutput_len = 2\n"
        "[[stages]]\nname = 'cold'\ncold = true\nnum_prompts = 1\n"
        "[[stages]]\nname = 'warm'\nnum_prompts = 3\nmax_concurrency = 1\n"
    )
    (tmp_path / "plan.toml").write_text("cycles = 3\n" + plan)
    done = withstand("plan.toml", "--output-dir", "r", cwd=tmp_path)
    assert code(done, tmp_path / "r") == 0, done.stderr
    starts = (tmp_path / "starts").read_text().split()
    assert len(set(starts)) == len(starts) == 1 + 3
    cold = cold_of(tmp_path / "r")
    stages = json.loads((tmp_path / "r" / "run.json").read_text())["stages"]
    ready_s = [stage["ready_s"] for stage in stages if stage["name"].startswith("cold")]
    assert (cold["by"], cold["cold"]["n"], cold["warm"]["n"]) == ("restart", 3, 9)
    assert cold["start_mean"] == pytest.approx(1000 * sum(ready_s) / 3)
    assert cold["cold"]["min"] > 1000 * min(ready_s)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--set", "cold.by=restart", "--base-url", "http://127.0.0.1:9"), "[target.serve]"),
        (("--set", "cold.by=pause", "--base-url", "http://127.0.0.1:9"), "cold.pause_s"),
        ((), "The embedded engine is never cold"),
        (("--set", "stages.1.num_prompts=2", "--base-url", "http://127.0.0.1:9"), "Stage cold-1 is cold"),
    ],
)
def test_what_cannot_become_cold_is_said_before_anything_is_begun(
    more: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    done = withstand(*PLAN, *more, "--output-dir", "r", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert not (tmp_path / "r").exists()


def test_a_server_whose_sleep_nobody_tells_of_is_a_users_mistake(tmp_path: Path) -> None:
    with TruthServer(Schedule(ttft_ms=5, itl_ms=1, tokens=4)) as server:
        done = withstand(*PLAN, *FEW, "--base-url", server.base_url, "--output-dir", "r", cwd=tmp_path)
    told = " ".join(done.stderr.split())
    assert done.returncode == 2, told
    assert "Nothing tells when the server is cold" in told
    assert "Give cold.pause_s" in told
