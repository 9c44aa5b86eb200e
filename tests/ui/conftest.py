import subprocess
import sys
from pathlib import Path

import pytest

from withstand.testing import Schedule, TruthServer

_LOAD = ("--request-rate", "40,80", "--num-prompts", "12", "--goodput", "ttft:5000")
_LENGTHS = ("--set", "workload.options.input_len=8", "--set", "workload.options.output_len=5")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a real run of two stages."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    with TruthServer(Schedule(ttft_ms=10, itl_ms=2, tokens=5)) as server:
        command = [sys.executable, "-m", "withstand", "run", "--base-url", server.base_url, "--quiet"]
        done = subprocess.run(
            [*command, *_LOAD, *_LENGTHS, "--output-dir", str(folder)], capture_output=True, text=True, check=False
        )
    assert (folder / "report.html").is_file(), done.stderr
    return folder
