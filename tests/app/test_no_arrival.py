"""A stage so short that nothing was due while it lasted: it is told, and counts nowhere as complete."""

import subprocess
import sys
from pathlib import Path

from withstand.app.report import load_run
from withstand.report.html import render_html
from withstand.report.markdown import escaped, markdown
from withstand.report.markup import NO_BREAK
from withstand.runs import RunFolder
from withstand.testing import Schedule, TruthServer
from withstand.ui.entry import State
from withstand.ui.library import Library

TOLD = "no arrival was drawn in 1 s; give it longer"
_LENGTHS = ("--set", "workload.options.input_len=8", "--set", "workload.options.output_len=5")


def withstand(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "withstand", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def run(rates: str, folder: Path) -> subprocess.CompletedProcess[str]:
    with TruthServer(Schedule(ttft_ms=10, itl_ms=2, tokens=5)) as server:
        asked = ("--base-url", server.base_url, "--request-rate", rates, "--duration", "1", "--seed", "0")
        return withstand("run", *asked, *_LENGTHS, "--output-dir", str(folder))


def test_a_stage_without_an_arrival_is_told_and_not_complete(tmp_path: Path) -> None:
    done = run("0.01,30", tmp_path / "r")
    line = f"not measured (rate-0.01): {TOLD}"
    assert done.returncode == 3
    assert "1 of 2 stages complete, 1 had no arrival." in done.stderr
    assert " ".join(done.stdout.split()).count(line) == 1
    assert done.stdout.count("Serving Benchmark Result") == 1  # none without a number
    loaded = load_run(tmp_path / "r")
    assert escaped(line) in markdown(loaded.summary)
    page = render_html(loaded.summary, loaded.series, loaded.about).replace(NO_BREAK, " ")
    assert page.count(line.removeprefix("n")) == 1
    assert TOLD in (tmp_path / "r" / "summary.json").read_text()
    for entry in RunFolder.open(tmp_path / "r").manifest.stages:
        assert entry.started_ns is not None
        assert entry.ended_ns is not None
        assert entry.ended_ns >= entry.started_ns
    (listed,) = Library(tmp_path).look().entries
    assert (listed.state, listed.stages, listed.stages_done) == (State.PARTIAL, 2, 1)


def test_a_run_without_an_arrival_says_why_once_and_nothing_untrue(tmp_path: Path) -> None:
    done = run("0.01", tmp_path / "r")
    again = withstand("report", str(tmp_path / "r"))
    assert (done.returncode, again.returncode) == (3, 3)
    for shown in (done.stdout, again.stdout, markdown(load_run(tmp_path / "r").summary)):
        assert " ".join(shown.split()).count(f"Nothing was measured: {TOLD}") == 1
        assert shown.count("give it") == 1
    page = (tmp_path / "r" / "report.html").read_text().replace(NO_BREAK, " ")
    assert page.count(TOLD) == 1
    assert '<main class="nothing">' in page
    (listed,) = Library(tmp_path).look().entries
    assert (listed.state, listed.stages, listed.stages_done) == (State.PARTIAL, 1, 0)
