"""The server's side of real runs: a real load, a real child that looks, a server that plays vLLM's metrics."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from exporter import Exporter, vllm
from outcomes import code
from withstand.record import HOST, Seen
from withstand.runs import RunFolder
from withstand.testing import Schedule, TruthServer

QUICK = Schedule(ttft_ms=20, itl_ms=5, tokens=10)
SMALL = ("--num-prompts", "40", "--max-concurrency", "4", "--input-len", "8", "--output-len", "10")


def run(*arguments: str, cwd: Path, to: str = "r", **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "withstand", "run", *SMALL, *arguments, "--output-dir", to]
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=90, check=False
    )


def stage_of(folder: Path) -> dict[str, Any]:
    (stage,) = json.loads((folder / "summary.json").read_text())["stages"]
    return stage


def busy(number: int) -> tuple[int, str]:
    """Every look finds more hits, a preemption more and four running."""
    return 200, vllm(
        num_requests_running=4,
        num_requests_waiting=number % 2,
        kv_cache_usage_perc=0.34,
        prefix_cache_queries_total=1000 * number,
        prefix_cache_hits_total=990 * number,
        num_preemptions_total=number,
        time_to_first_token_seconds_sum=0.2 * number,
        time_to_first_token_seconds_count=10 * number,
        request_queue_time_seconds_sum=0.05 * number,
        request_queue_time_seconds_count=10 * number,
        request_prefill_time_seconds_sum=0.1 * number,
        request_prefill_time_seconds_count=10 * number,
    )


def test_what_the_server_says_is_in_the_folder_the_summary_the_text_and_the_page(tmp_path: Path) -> None:
    with TruthServer(QUICK) as server, Exporter(busy) as exporter:
        done = run(
            "--base-url", server.base_url, "--metrics-url", exporter.url, "--scrape-interval", "0.1", cwd=tmp_path
        )
    assert code(done, tmp_path) == 0, done.stderr
    samples = RunFolder.open(tmp_path / "r").samples()
    assert {sample.source for sample in samples} >= {HOST, exporter.url}
    assert {sample.engine for sample in samples if sample.source == exporter.url} == {"vLLM"}
    stage = stage_of(tmp_path / "r")
    seen = stage["server"]
    assert seen["running"] == {"p50": 4, "max": 4}
    assert seen["prefix_share"] == pytest.approx(0.99)
    assert seen["preemptions"] >= 2
    assert seen["whole"]
    means = [seen[name] for name in ("ttft_mean_ms", "queue_mean_ms", "prefill_mean_ms")]
    assert means == pytest.approx([20, 5, 10])
    assert {doubt["kind"] for doubt in stage["doubts"]} >= {"prefix_cache", "preempted"}
    line = " ".join(done.stdout.split())
    assert "server: running p50 4, max 4; waiting p50" in line
    assert "prefix hits 99 %" in line
    assert '"kv_share"' in (tmp_path / "r" / "report.html").read_text()


def test_a_target_without_metrics_is_normal(tmp_path: Path) -> None:
    with TruthServer(QUICK) as server:
        done = run("--base-url", server.base_url, cwd=tmp_path)
    assert code(done, tmp_path) == 0
    assert "metrics" not in done.stdout + done.stderr
    told = [line for line in done.stdout.splitlines() if "server:" in line]
    assert all("server: this machine's CPU" in line for line in told), "which a busy one says of itself"
    assert {sample.source.rstrip("0123456789") for sample in RunFolder.open(tmp_path / "r").samples()} <= {HOST, "gpu"}


def test_an_address_that_was_named_and_tells_nothing_is_told(tmp_path: Path) -> None:
    with TruthServer(QUICK) as server, Exporter(lambda _: (200, "<html>")) as exporter:
        done = run("--base-url", server.base_url, "--metrics-url", exporter.url, cwd=tmp_path)
    assert code(done, tmp_path) == 0
    assert f"--metrics-url {exporter.url} told nothing" in done.stderr


def kill_who_looks() -> None:
    """The child of a run that we have started."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            ours = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1]) == os.getpid()
            if ours and b"withstand.app.watch_part" in (folder / "cmdline").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)


def test_that_what_looks_was_ended_is_told_and_no_address_is_blamed(tmp_path: Path) -> None:
    def ends_it(number: int) -> tuple[int, str]:
        kill_who_looks()
        return busy(number)

    with TruthServer(QUICK) as server, Exporter(ends_it) as exporter:
        done = run("--base-url", server.base_url, "--metrics-url", exporter.url, cwd=tmp_path)
    assert code(done, tmp_path) == 0
    assert "server's side was not looked at to the end" in done.stderr
    assert "told nothing" not in done.stderr


@pytest.mark.parametrize("answer", [(404, "no"), (401, "no")])
def test_who_says_no_is_asked_once(answer: tuple[int, str], tmp_path: Path) -> None:
    with TruthServer(QUICK) as server, Exporter(lambda _: answer) as exporter:
        run("--base-url", server.base_url, "--metrics-url", exporter.url, "--scrape-interval", "0.05", cwd=tmp_path)
    assert len(exporter.asked) == 1


def test_who_insists_on_a_slash_has_it(tmp_path: Path) -> None:
    with TruthServer(QUICK) as server, Exporter(lambda n: busy(n) if n else (307, "")) as exporter:
        run("--base-url", server.base_url, "--metrics-url", exporter.url, cwd=tmp_path)
    assert [path for path, _ in exporter.asked[:2]] == ["/metrics", "/metrics/"]
    assert stage_of(tmp_path / "r")["server"]["engines"] == ["vLLM"]


def test_a_server_that_hangs_does_not_delay_the_run(tmp_path: Path) -> None:
    with TruthServer(QUICK) as server:
        started = time.monotonic()
        run("--base-url", server.base_url, "--scrape-interval", "0", cwd=tmp_path)
        alone_s = time.monotonic() - started
        with Exporter(busy, hangs_s=60) as exporter:
            started = time.monotonic()
            arguments = ("--base-url", server.base_url, "--metrics-url", exporter.url)
            done = run(*arguments, cwd=tmp_path, to="hung")
            hung_s = time.monotonic() - started
    assert code(done, tmp_path) == 0, done.stderr
    assert hung_s < alone_s + 15


def test_nothing_is_looked_at_where_that_is_not_wanted(tmp_path: Path) -> None:
    with TruthServer(QUICK) as server, Exporter(busy) as exporter:
        arguments = ("--base-url", server.base_url, "--metrics-url", exporter.url, "--scrape-interval", "0")
        run(*arguments, cwd=tmp_path)
    assert not exporter.asked
    assert RunFolder.open(tmp_path / "r").samples() == []


def test_the_key_goes_to_the_target_alone(tmp_path: Path) -> None:
    with TruthServer(QUICK) as server, Exporter(busy) as exporter:
        arguments = ("--base-url", server.base_url, "--metrics-url", exporter.url, "--api-key-env", "KEY")
        run(*arguments, cwd=tmp_path, KEY="sk-secret-of-ours")
    assert exporter.asked
    assert all("Authorization" not in headers for _, headers in exporter.asked)
    for file in (tmp_path / "r").iterdir():
        assert b"sk-secret-of-ours" not in file.read_bytes()


@pytest.mark.parametrize("url", ["localhost:9090", "http://u:p@h/metrics", "ftp://h/metrics"])
def test_an_address_that_is_none_is_named(url: str, tmp_path: Path) -> None:
    done = run("--base-url", "http://127.0.0.1:9", "--metrics-url", url, cwd=tmp_path)
    assert done.returncode == 2
    assert "--metrics-url" in done.stderr
    assert not (tmp_path / "r").exists()


def test_samples_survive_a_run_that_is_gone_on_with(tmp_path: Path) -> None:
    """Closed once, appended to, and closed again: nothing is lost, nothing is there twice."""
    with TruthServer(QUICK) as server, Exporter(busy) as exporter:
        run("--base-url", server.base_url, "--metrics-url", exporter.url, cwd=tmp_path)
    folder = RunFolder.open(tmp_path / "r")
    before = folder.samples()
    assert before
    assert [sample.at_ns for sample in before] == sorted(sample.at_ns for sample in before)
    folder.samples_file.write_bytes(
        b'{"at_ns":1,"source":"host","values":{"cpu_share":0.5}}\n{"at_ns":2,"source":"host","values":{"no":1}}\n{"at'
    )
    folder.close()
    after = RunFolder.open(tmp_path / "r").samples()
    assert after[1:] == before
    assert after[0].values == {Seen.CPU_SHARE: 0.5}
    assert not folder.samples_file.exists()
