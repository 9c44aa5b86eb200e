"""Stages that end for a reason of their own, as a user has it: real processes, a server that fails or falls behind."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from outcomes import code
from withstand.testing import Schedule, TruthServer

QUICK = Schedule(ttft_ms=20, itl_ms=1, tokens=3)
RUN = (sys.executable, "-m", "withstand", "run")
SHORT = "num_warmups = 1\n[workload]\noptions = { input_len = 4, output_len = 3 }\n"


def withstand(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RUN, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def stages_of(folder: Path) -> dict[str, Any]:
    return {stage["name"]: stage for stage in json.loads((folder / "run.json").read_text())["stages"]}


def test_a_server_that_fails_costs_a_few_requests_a_stage_and_the_report_says_why(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(
        "until = { errors = 0.2 }\n" + SHORT.replace("1\n", "0\n", 1) + "[[stages]]\n"
        'arrivals = { kind = "constant", rate = [20, 40] }\nduration_s = 30\n'
        '[[stages]]\nname = "all the same"\nmax_concurrency = 2\nnum_prompts = 40\nuntil = { errors = 1 }\n'
    )
    with TruthServer(QUICK, behaviour="http_500") as server:
        done = withstand("plan.toml", "--base-url", server.base_url, "--output-dir", "r", cwd=tmp_path)
    assert done.returncode == 3
    stages = stages_of(tmp_path / "r")
    assert [stage["state"] for stage in stages.values()] == ["done"] * 3
    assert "Stage rate-20 ended after" in done.stderr
    assert "more than 20 % of the requests fail" in done.stderr.replace("\n", " ")
    summary = json.loads((tmp_path / "r" / "summary.json").read_text())["stages"]
    assert [stage["ended_by"] is None for stage in summary] == [False, False, True]
    assert summary[0]["duration"] < 15
    assert summary[2]["attempted"] == 40
    assert "ended early (rate-20): more than 20 % of the requests fail (" in done.stdout
    assert "ended early" in (tmp_path / "r" / "report.html").read_text().lower()


def test_what_is_heavier_than_a_load_that_was_too_much_is_left_out_when_asked(tmp_path: Path) -> None:
    """Two slots of 50 ms: forty a second are carried."""
    (tmp_path / "plan.toml").write_text(
        "leave_out_heavier = true\n"
        + SHORT
        + '[[stages]]\nname = "rate-10"\narrivals = { kind = "constant", rate = 10 }\nduration_s = 2\n'
        'until = { queue = "grows" }\n[[stages]]\narrivals = { kind = "constant", rate = [70, 90] }\n'
        'duration_s = 20\nuntil = { queue = "grows" }\n'
    )
    with TruthServer(Schedule(ttft_ms=48, itl_ms=1, tokens=3), slots=2) as server:
        arguments = ("plan.toml", "--base-url", server.base_url, "--set", "stages.1.num_prompts=1300")
        done = withstand(*arguments, "--output-dir", "r", cwd=tmp_path)
    said = done.stderr.replace("\n", " ")
    stages = stages_of(tmp_path / "r")
    assert {name: stage["state"] for name, stage in stages.items()} == {
        "warm-up": "done",
        "rate-10": "done",
        "rate-70": "done",
        "rate-90": "too_heavy",
    }
    assert stages["rate-10"]["ended_by"] is None
    assert stages["rate-70"]["ended_by"].startswith("the queue grows (from ")
    assert "Stage rate-90 is left out: it is heavier than rate-70, where the queue grows" in said
    told = "left out (rate-90): it is heavier than rate-70, where the queue grows"
    assert told in done.stdout.replace("\n", " ")
    assert told in (tmp_path / "r" / "report.html").read_text().replace("Left out", "left out")
    assert json.loads((tmp_path / "r" / "summary.json").read_text())["complete"] is True


def test_a_queue_that_grows_is_named_while_the_stage_goes_on_although_nobody_asked(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(
        "drain_s = 1\n"
        + SHORT
        + '[[stages]]\nname = "s"\narrivals = { kind = "constant", rate = 70 }\nduration_s = 16\n'
    )
    with TruthServer(Schedule(ttft_ms=48, itl_ms=1, tokens=3), slots=2) as server:
        done = withstand("plan.toml", "--base-url", server.base_url, "--output-dir", "r", cwd=tmp_path)
    assert done.returncode in {0, 3}
    assert "Stage s: the queue grows (from " in done.stderr.replace("\n", " ")
    assert stages_of(tmp_path / "r")["s"]["ended_by"] is None
    doubts = {
        doubt["kind"] for doubt in json.loads((tmp_path / "r" / "summary.json").read_text())["stages"][0]["doubts"]
    }
    assert doubts & {"rate_not_achieved", "latency_grows"}


def test_a_rule_that_does_not_apply_leaves_the_stage_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(
        SHORT + "[[stages]]\nmax_concurrency = 2\nnum_prompts = 60\nuntil = { errors = 0.2 }\n"
    )
    with TruthServer(QUICK) as server:
        done = withstand("plan.toml", "--base-url", server.base_url, "--output-dir", "r", cwd=tmp_path)
    assert code(done, tmp_path / "r") == 0, done.stderr
    assert "ended early" not in done.stdout
