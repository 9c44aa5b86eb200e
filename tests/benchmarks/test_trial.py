"""withstand, run as its users run it, held against a truth server; small, to show that all fits together."""

import os
import sys
from pathlib import Path

import pytest
from benchmarks.load.instrument import AbsentError, Cores, go_truth_server, truth_server
from benchmarks.load.trial import LARGE_WORDS, Load, run_withstand

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="needs /proc and two cores"),
]


@pytest.fixture(params=["own", "go"])
def which(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "own":
        monkeypatch.setenv("WITHSTAND_SHARED", str(tmp_path))
        monkeypatch.delenv("WITHSTAND_TRUTH_BINARY", raising=False)
    else:
        try:
            go_truth_server()
        except AbsentError as e:
            pytest.skip(str(e))
    return str(request.param)


def test_every_token_of_a_run_meets_its_truth(which: str, tmp_path: Path) -> None:
    cores = Cores.of_this_machine()
    load = Load(requests=30, rate_rps=20.0, tokens=8)
    with truth_server(cores.server, itl_ms=5) as server:
        run = run_withstand(server, cores, load, tmp_path / "trial")
    assert run.lost == 0
    assert run.outcome.errors.matched == 30
    assert len(run.outcome.errors.delay_ns) == 240
    assert min(run.outcome.errors.delay_ns) > -1_000_000  # no token was seen before it was written
    assert len(run.late_ns) == 30
    assert 5 < run.outcome.rate_rps < 80
    assert run.stage["completed"] == 30


def test_every_nth_prompt_can_be_a_large_one() -> None:
    load = Load(requests=20, rate_rps=1.0, large_every=9)
    assert [number for number in range(20) if load.is_large(number)] == [8, 17]
    assert len("tok ") * LARGE_WORDS >= 500_000
