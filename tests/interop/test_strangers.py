"""What is no serving result is refused by its name; what only stands beside one counts for nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from foreign import VLLM_BLOCK, VLLM_JSON, several
from withstand.errors import FormatError
from withstand.interop.read import read_path, read_text

JSONS: list[tuple[Any, str]] = [
    ({"elapsed_time": 3.0, "num_requests": 5, "total_num_tokens": 9, "requests_per_second": 1.6}, "offline throughput"),
    ({"avg_latency": 3.0, "latencies": [3.0], "percentiles": {"50": 3.0}}, "offline latency"),
    ({"mm_processor_stats": {}, "mean_e2el_ms": 3.0}, "input processor"),
    ({"run_number": 1, "error_type": "X", "error": "no", "serve_overrides": {}, "bench_overrides": {}}, "that failed"),
    (VLLM_JSON | {"run_number": -1}, "warm-up of vLLM's sweep"),
    ([{"benchmark": {}, "model": {}, "metric": {"name": "ttft", "extra_info": VLLM_JSON}}] * 3, "PyTorch's dashboard"),
    ({"batch_size": 1, "prefill_latency": 0.1, "total_latency": 0.5, "overall_throughput": 9.0}, "bench_one_batch"),
    (
        {"batch_size": 1, "last_gen_throughput": 0.1, "overall_throughput": 9.0, "last_ttft": 1},
        "bench_one_batch_server",
    ),
    ({"successful_requests": 9, "total_latency": 2.0, "last_gen_throughput": 3.0}, "offline throughput"),
    ({"concurrency_ratio": 0.8, "window_start": 1.0, "average_concurrency": 5.9, "completed": 3}, "steady-state"),
    ({"timeslices": [{"timeslice_index": 0, "request_latency": {"unit": "ms", "avg": 5.0}}]}, "slices of time"),
    ({"schema_version": "1.0", "metadata": {}, "metrics": {"request_latency_avg": {"mean": 1}}}, "over several runs"),
    ({"experiments": [], "service_kind": "openai"}, "genai-perf's raw"),
    ([{"build_commit": "x", "n_prompt": 5, "n_gen": 6, "avg_ts": 7.0}], "llama-bench"),
    ({"metrics": {"http_reqs": {}}, "root_group": {}}, "k6"),
    ({"latencies": {}, "bytes_in": {}, "status_codes": {}}, "Vegeta"),
    ({"summary": {}, "responseTimeHistogram": {}, "latencyPercentiles": {}}, "oha"),
]
TEXTS = [
    ("Throughput: 1.60 requests/s, 30.00 total tokens/s, 9.00 output tokens/s\n", "offline throughput"),
    ("Avg latency: 3.25 seconds\n10% percentile latency: 3.0 seconds\n", "offline latency"),
    ("Running 30s test @ http://h/\n  2 threads and 10 connections\nRequests/sec:  9.5\n", "wrk"),
    ("\nSummary:\n  Total:\t1.2345 secs\n  Slowest:\t0.5 secs\n  Requests/sec:\t8.1\n", "hey"),
    ("Summary:\n  Success rate: 100.00%\n  Total:        1.2 secs\n  Slowest: 0.5 secs\n", "oha"),
    ("This is ApacheBench, Version 2.3\n\nRequests per second:    9.31 [#/sec] (mean)\n", "ApacheBench"),
    ("Requests      [total, rate, throughput]  60, 10.1, 9.9\nLatencies     [min, mean, 50]  1ms\n", "Vegeta"),
    ("     http_req_duration..............: avg=5.1ms min=1ms med=5ms max=9ms p(90)=8ms\n", "k6"),
    ("Type,Name,Request Count,Failure Count,Median Response Time\nPOST,/v1,5,0,3\n", "Locust"),
    ("timeStamp,elapsed,label,responseCode\n1,2,x,200\n", "JMeter"),
    ("Concurrency,Inferences/Second,Client Send\n1,5.0,3\n", "perf_analyzer"),
    ("| model | size | backend | test | t/s |\n|---|---|---|---|---|\n| m | 1 | CPU | pp512 | 9.1 |\n", "llama-bench"),
    ("Prefill. latency: 0.12345 s, throughput:   1000.00 token/s\n", "bench_one_batch"),
    ("Timeslice,Start_NS,Metric,Unit,Stat,Value\n0,1,Request Latency,ms,avg,5\n", "slices of time"),
]
OFFLINE = """\
====== Offline Throughput Benchmark Result =======
Backend:                                 engine
Successful requests:                     1000
Benchmark duration (s):                  12.00
Total generated tokens:                  9000
Output token throughput (tok/s):         750.00
==================================================
"""
STEADY = """\
============== Steady-State Result ===============
Concurrency ratio:                       0.80
Measurement duration (s):                0.63
Completed requests:                      19
Input token throughput (tok/s):          958.10
Generated tokens:                        246.00
Output token throughput (tok/s):         387.65
Average concurrency:                     5.98
==================================================
"""


@pytest.mark.parametrize(
    ("text", "name"), [*((json.dumps(value), name) for value, name in JSONS), *TEXTS, (OFFLINE, "Offline Throughput")]
)
def test_it_is_refused_by_its_name(text: str, name: str) -> None:
    with pytest.raises(FormatError, match=rf"^f is no result.*{name}") as told:
        read_text(text, "f")
    assert str(told.value).endswith(".")


@pytest.mark.parametrize("text", [text for text, _ in TEXTS])
def test_a_result_beside_such_lines_is_read(text: str) -> None:
    assert len(several(f"{VLLM_BLOCK}\n{text}")) == 1


def test_a_sweep_s_folder_counts_neither_warm_up_nor_failure(tmp_path: Path) -> None:
    for name, run in (("run=0", VLLM_JSON | {"run_number": 0}), ("warmup", VLLM_JSON | {"run_number": -1})):
        (tmp_path / f"{name}.json").write_text(json.dumps(run))
    failure = {"run_number": 1, "error_type": "X", "error": "no", "serve_overrides": {}}
    (tmp_path / "run=1.failure.json").write_text(json.dumps(failure))
    imported = read_path(tmp_path)
    assert [run.source.file for run in imported.runs] == ["run=0.json"]
    assert {refused.position for refused in imported.refused} == {"warmup.json", "run=1.failure.json"}


def test_aiperf_s_warm_up_counts_for_nothing(tmp_path: Path) -> None:
    def write(name: str, latency: float) -> None:
        value = {"request_latency": {"unit": "ms", "avg": latency}, "was_cancelled": False}
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(value))

    write("profile.json", 5.0)
    write("phases/warmup/profile.json", 9.0)
    phases = [{"phase_kind": "warmup", "metrics_json": "phases/warmup/profile.json"}, {"phase_kind": "profiling"}]
    (tmp_path / "phase_manifest.json").write_text(json.dumps({"phases": phases}))
    imported = read_path(tmp_path)
    assert [run.stats["e2el"].mean for run in imported.runs] == [5.0]
    assert "warm-up" in imported.refused[0].reason


def test_sglang_s_steady_state_is_a_part_of_its_run() -> None:
    whole, steady = several(f"{VLLM_BLOCK}\n{STEADY}")
    assert "part" not in whole.conditions.labels
    assert (steady.source.tool, steady.conditions.labels["part"]) == ("SGLang", "Steady-State Result")
    assert (steady.numbers["completed"], steady.numbers["duration_s"]) == (19, 0.63)
