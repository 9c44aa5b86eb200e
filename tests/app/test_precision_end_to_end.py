"""A stage of ``withstand run`` that ends once its number is known as exactly as asked."""

import json
import subprocess
import sys
from pathlib import Path

from withstand.runs import RunFolder, RunState
from withstand.testing import Schedule, TruthServer


def test_a_run_ends_a_stage_once_its_number_is_known_as_exactly_as_asked(tmp_path: Path) -> None:
    jittery = Schedule(ttft_ms=100, ttft_jitter="exp", itl_ms=1, tokens=3)  # far above what a busy machine adds
    with TruthServer(jittery) as server:
        load = ("--request-rate", "100", "--num-prompts", "3000", "--precision", "ttft:mean:15%")
        command = [sys.executable, "-m", "withstand", "run", "--base-url", server.base_url, *load, "--output-dir", "r"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in {0, 3}, done.stderr
    entry = RunFolder.open(tmp_path / "r").manifest.stages[-1]
    assert entry.state is RunState.DONE
    assert entry.ended_by == "mean TTFT within 15 %"
    (stage,) = json.loads((tmp_path / "r" / "summary.json").read_text())["stages"]
    assert 50 <= stage["completed"] < 1500
    assert stage["failed"] <= 10  # due in the last moment, and not sent any more
