"""What is met in place of a result and is none: other benchmarks of the same tools, and load tests of any HTTP.

Each is known by what it holds and refused by its name, with what it lacks and what to give in its place. Pure.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

_HTTP = "a load test of any HTTP: it times whole answers and knows no tokens, so there is neither TTFT nor TPOT in it."
_OFFLINE = "without a server: no requests arrive over time in it."
_BATCH = "one batch at a time: no requests arrive over time in it."
_QUOTED = frozenset({"file", "expected"})
_GLANCE = 200_000
"""So much of a text, from either end, is looked at."""


class _Stranger(msgspec.Struct, frozen=True):
    """Known by the keys of an object, or by lines of a text."""

    name: str
    keys: frozenset[str]
    lines: str = ""


def _of(name: str, keys: str, lines: str = "") -> _Stranger:
    return _Stranger(name, frozenset(keys.split()), lines)


_KNOWN: Sequence[_Stranger] = (
    _of(
        f"vLLM's offline throughput benchmark {_OFFLINE}",
        "elapsed_time num_requests",
        r"^Throughput: .* total tokens/s",
    ),
    _of(f"vLLM's offline latency benchmark {_OFFLINE}", "avg_latency latencies", r"^Avg latency: .* seconds\s*$"),
    _of("vLLM's benchmark of its start-up: no requests in it.", "avg_cold_startup_time"),
    _of("vLLM's benchmark of its input processor, without a server.", "mm_processor_stats"),
    _of("the warm-up of vLLM's sweep, which counts for nothing.", "run_number duration completed"),
    _of("a run of vLLM's sweep that failed; its error stands in it.", "error_type error serve_overrides"),
    _of(
        f"SGLang's offline throughput benchmark {_OFFLINE}",
        "successful_requests total_latency last_gen_throughput",
        r"^=+ Offline Throughput Benchmark Result =+",
    ),
    _of(f"SGLang's bench_one_batch, {_BATCH}", "batch_size prefill_latency", r"^Prefill\. latency: .* throughput: "),
    _of(f"SGLang's bench_one_batch_server, {_BATCH}", "batch_size overall_throughput last_gen_throughput"),
    _of(
        "SGLang's steady-state window, without latencies: give the result file of the same run.",
        "concurrency_ratio window_start average_concurrency",
    ),
    _of(
        "slices of time of one AIPerf run: give its profile_export_aiperf.json.",
        "timeslices",
        r"^Timeslice,(?:.*,)?Metric,Unit,",
    ),
    _of("AIPerf's means over several runs: give the folders of the runs.", "schema_version metadata metrics"),
    _of("AIPerf's means over a sweep: give the folders of the runs.", "aggregation_type num_profile_runs"),
    _of("genai-perf's raw records: give profile_export_genai_perf.json beside them.", "experiments service_kind"),
    _of("a result of lm-evaluation-harness: it scores answers and times none.", "results configs versions"),
    _of(f"llama-bench of llama.cpp, {_BATCH}", "build_commit n_prompt n_gen avg_ts", r"^\| *model +\|.*\| *t/s *\|"),
    _of(f"k6, {_HTTP}", "metrics root_group", r"\bhttp_req_duration\b.*\bavg="),
    _of(f"k6, {_HTTP}", "metric type data"),
    _of(f"Vegeta, {_HTTP}", "latencies bytes_in status_codes", r"^Requests +\[total, rate"),
    _of(f"Vegeta, {_HTTP}", "attack seq code latency"),
    _of(f"oha, {_HTTP}", "summary responseTimeHistogram latencyPercentiles", r"^ *Success rate:\s.*\n *Total:\s"),
    _of(f"Fortio, {_HTTP}", "RunType DurationHistogram", r"^Fortio [\d.]+ running at"),
    _of(
        f"Locust, {_HTTP}",
        "num_requests num_failures response_times",
        r"^\"?(?:Type,Name,Request Count|Timestamp,User Count)",
    ),
    _of(f"wrk, {_HTTP}", "", r"^Running .* test @ .*\n *\d+ threads and \d+ connections"),
    _of(f"hey, {_HTTP}", "", r"^Summary:\n *Total:\s+[\d.]+ secs\n *Slowest:"),
    _of(f"ApacheBench, {_HTTP}", "", r"^This is ApacheBench"),
    _of(f"JMeter, {_HTTP}", "", r"^timeStamp,elapsed,label,"),
    _of(
        "Triton's perf_analyzer, a load test of any model: it knows no tokens.",
        "",
        r"^Concurrency,Inferences/Second,|^Request Rate,Inferences/Second,",
    ),
    _of(
        "trtllm-bench, TensorRT-LLM's benchmark without a server: it has no known reader here.",
        "engine performance request_info",
        r"^= PERFORMANCE OVERVIEW",
    ),
    _of("a log of MLPerf's LoadGen, which no reader here knows.", "", r"^MLPerf Results Summary"),
)


def named(value: Mapping[str, Any]) -> str | None:
    """What a JSON object is, if it is one of these."""
    return next((s.name for s in _KNOWN if s.keys and s.keys <= value.keys()), None)


def named_list(value: Sequence[Any]) -> str | None:
    """The same of a list: vLLM's records for a dashboard hold all of a run's numbers again beside each metric."""
    if value and all(isinstance(item, Mapping) and {"benchmark", "metric"} <= item.keys() for item in value):
        return "vLLM's records for PyTorch's dashboard, one a metric: give the file beside it, without .pytorch."
    if value and all(isinstance(item, Mapping) and item.keys() >= _QUOTED for item in value):
        return "a catalogue that quotes what stands in other files: give those files themselves."
    return None


def named_text(text: str) -> str | None:
    """What a printed report or a CSV is, if it is one of these."""
    parts = (text[:_GLANCE], text[-_GLANCE:] if len(text) > _GLANCE else "")
    return next((s.name for s in _KNOWN if s.lines and any(re.search(s.lines, p, re.MULTILINE) for p in parts)), None)
