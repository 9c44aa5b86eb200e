"""Plans with several targets as a user runs them: in turn, cut and gone on with, failing in parts, compared."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutting import begun, facts, stages_of, state_of, wait_until, withstand
from outcomes import code
from withstand.runs import Asked, RunFolder, RunState, TargetsFolder
from withstand.runs.manifest import Writer
from withstand.spec import Plan, Target
from withstand.testing import Schedule, TruthServer

FAST = Schedule(ttft_ms=5, itl_ms=1, tokens=4)
SLOW = Schedule(ttft_ms=60, itl_ms=1, tokens=4)
PLAN = """
num_warmups = 1
[workload]
options = {{ input_len = 8, output_len = 4, range_ratio = 0.4 }}
[[stages]]
arrivals = {{ kind = "poisson", rate = [60, 120] }}
num_prompts = 40
[target]
model = "truth"
[targets.fast]
base_url = "{fast}"
[targets.slow]
base_url = "{slow}"
"""


def written(folder: Path, fast: str, slow: str, more: str = "") -> None:
    (folder / "plan.toml").write_text(more + PLAN.format(fast=fast, slow=slow))


def asked(server: TruthServer) -> list[str]:
    return sorted(json.dumps(served.body) for served in server.truth() if served.body)


def other(verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "withstand", verb, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_every_target_gets_the_same_requests_a_run_of_its_own_and_a_comparison(tmp_path: Path) -> None:
    with TruthServer(FAST, keep_bodies=True) as fast, TruthServer(SLOW, keep_bodies=True) as slow:
        written(tmp_path, fast.base_url, slow.base_url, more="price_per_hour = 2\n")
        done = withstand("plan.toml", "--output-dir", "r", cwd=tmp_path)
        assert asked(fast) == asked(slow)
    parent = tmp_path / "r"
    assert code(done, parent) == 0, done.stderr
    assert "For 2 targets: 4 stages and 2 warm-ups, at least 2 s" in done.stderr
    assert sorted(path.name for path in parent.iterdir()) == [
        "comparison.html",
        "comparison.json",
        "fast",
        "slow",
        "targets.json",
    ]
    salts = {RunFolder.open(parent / name).manifest.plan.salt for name in ("fast", "slow")}
    assert len(salts) == 1
    assert salts != {""}
    comparison = json.loads((parent / "comparison.json").read_text())
    assert [side["label"] for side in comparison["sides"]] == ["fast", "slow"]
    assert "slow" in done.stdout
    assert f"Comparison: {Path('r') / 'comparison.html'}" in done.stdout
    reported, compared = other("report", str(parent)), other("compare", str(parent))
    assert "fast/rate-60" in reported.stdout.replace("\n", "")
    assert compared.returncode == 0, compared.stderr


def test_as_json_the_result_is_the_comparison(tmp_path: Path) -> None:
    with TruthServer(FAST) as fast, TruthServer(SLOW) as slow:
        written(tmp_path, fast.base_url, slow.base_url)
        done = withstand("plan.toml", "--output-dir", "r", "--json", "--quiet", cwd=tmp_path)
    assert code(done, tmp_path / "r") == 0, done.stderr
    assert json.loads(done.stdout) == json.loads((tmp_path / "r" / "comparison.json").read_text())


def test_a_target_that_is_not_there_loses_nothing_and_is_tried_again(tmp_path: Path) -> None:
    with TruthServer(SLOW) as slow:
        with TruthServer(FAST) as fast:
            gone = fast.base_url
        written(tmp_path, gone, slow.base_url)
        done = withstand("plan.toml", "--output-dir", "r", cwd=tmp_path)
        assert done.returncode == 3
        assert "Target fast: " in done.stderr
        assert not (tmp_path / "r" / "fast").exists()
        assert RunFolder.open(tmp_path / "r" / "slow").manifest.state is RunState.DONE
        with TruthServer(FAST, port=int(gone.rpartition(":")[2])):
            again = withstand("--resume", "r", cwd=tmp_path)
    assert code(again, tmp_path / "r") == 0, again.stderr
    assert (tmp_path / "r" / "comparison.html").exists()


def test_where_no_target_is_there_nothing_is_left_behind(tmp_path: Path) -> None:
    with TruthServer(FAST) as server:
        gone = server.base_url
    written(tmp_path, gone, gone)
    done = withstand("plan.toml", "--output-dir", "r", cwd=tmp_path)
    assert done.returncode == 3
    assert not (tmp_path / "r").exists()


def test_what_cannot_be_gone_on_with_now_can_be_later_and_notes_beside_it_stay(tmp_path: Path) -> None:
    with TruthServer(FAST) as server:
        gone = server.base_url
    plan = Plan(target=Target(base_url=gone), targets={name: Target(base_url=gone) for name in ("a", "b")})
    asked = Asked(version="0", created_utc="", plan=plan, writer=Writer(pid=0, started=None))
    TargetsFolder.create(tmp_path / "r", asked)
    (tmp_path / "r" / "notes.txt").write_text("mine")
    assert withstand("--resume", "r", cwd=tmp_path).returncode == 3
    assert TargetsFolder.is_one(tmp_path / "r")
    assert (tmp_path / "r" / "notes.txt").read_text() == "mine"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A plan's folder with a whole run of it; its servers stand."""
    folder = tmp_path_factory.mktemp("targets")
    with TruthServer(FAST) as fast, TruthServer(SLOW) as slow:
        written(folder, fast.base_url, slow.base_url, more="seed = 7\n")
        done = withstand("plan.toml", "--output-dir", "whole", cwd=folder)
        assert code(done, folder / "whole") == 0, done.stderr
        yield folder


@pytest.mark.parametrize(("target", "place"), [("fast", 2), ("slow", 1), ("slow", 2)])
def test_killed_anywhere_and_resumed_it_leaves_what_a_whole_one_leaves(whole: Path, target: str, place: int) -> None:
    cut = f"{target}-{place}"
    with begun("plan.toml", "--output-dir", cut, cwd=whole):
        wait_until(lambda: state_of(whole / cut / target, place) == "running")
    time.sleep(0.5)  # the workers notice
    again = withstand("--resume", cut, cwd=whole)
    assert code(again, whole / cut) == 0, again.stderr
    for name in ("fast", "slow"):
        assert facts(whole / cut / name) == facts(whole / "whole" / name)
    assert (whole / cut / "comparison.json").exists()


def test_what_is_there_when_the_user_stops_it_is_compared(tmp_path: Path) -> None:
    with TruthServer(FAST) as fast, TruthServer(SLOW) as slow:
        written(tmp_path, fast.base_url, slow.base_url)
        with begun("plan.toml", "--output-dir", "r", cwd=tmp_path) as process:
            wait_until(lambda: state_of(tmp_path / "r" / "slow", 2) == "running")
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "`withstand run --resume r` goes on with all targets." in err.replace("\n", " ")
    assert [stage["state"] for stage in stages_of(tmp_path / "r" / "fast")] == ["done"] * 3
    assert (tmp_path / "r" / "comparison.html").exists()


def test_a_budget_is_for_all_of_them(tmp_path: Path) -> None:
    with TruthServer(FAST) as fast, TruthServer(SLOW) as slow:
        written(tmp_path, fast.base_url, slow.base_url)
        rest = ("--duration", "30", "--set", "stages.0.arrivals.rate=20", "--set", "stages.0.num_prompts=1000")
        done = withstand("plan.toml", *rest, "--budget", "8s", "--output-dir", "r", cwd=tmp_path)
        none = withstand("plan.toml", *rest, "--budget", "4s", "--output-dir", "none", cwd=tmp_path)
    assert code(done, tmp_path / "r") == 0, done.stderr
    stages = [stages_of(tmp_path / "r" / name)[1]["stage"] for name in ("fast", "slow")]
    assert [stage["duration_s"] for stage in stages] == [pytest.approx(3.2)] * 2
    assert none.returncode == 2
    assert "That is for each of 2 targets." in none.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--base-url", "http://127.0.0.1:1"), "--base-url: the plan has several targets (fast, slow)"),
        (("--set", "targets.slow.base_ulr=x"), "`base_ulr` (did you mean base_url?) - at `$.targets.slow`"),
        (("--set", "targets.slow.stream=7"), "`$.targets.slow.stream`"),
        (("--set", "targets.slow.base_url=nowhere"), "targets.slow: "),
        (("--set", "targets.slow.backend=nope"), "targets.slow: target.backend"),
        (("--set", 'targets={"../up": {}}'), "`$.targets`"),
    ],
)
def test_what_is_wrong_with_a_target_is_said_with_its_name_before_any_is_measured(
    tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    written(tmp_path, "http://127.0.0.1:1", "http://127.0.0.1:1")
    done = withstand("plan.toml", *arguments, "--output-dir", "r", cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert not (tmp_path / "r").exists()


def test_a_limit_is_searched_at_one_target(tmp_path: Path) -> None:
    written(tmp_path, "http://127.0.0.1:1", "http://127.0.0.1:1")
    done = other("find-limit", str(tmp_path / "plan.toml"), "--slo", "ttft:p95:500")
    assert done.returncode == 2
    assert "find-limit searches one target" in done.stderr
