"""The shared index of real result files, against what the importers make of them: value by value.

``python tests/support/expected.py`` prints the importers' table.
"""

import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from shared import ROOT
from withstand.errors import FormatError
from withstand.interop import serving_json, serving_text
from withstand.interop.read import read_path
from withstand.interop.shape import Imported, ImportedRun

RESULTS = ROOT / "data" / "results"
_STAT = re.compile(r"^(?P<metric>\w+?)(?:_(?:ms|s|SECONDS))?_(?P<which>mean|avg|p\d+)(?P<unit>_s|_ms)?$")
_NAMES = {
    "itl": "tpot", "e2e": "e2el", "request_latency": "e2el", "results_ttft": "ttft",
    "results_inter_token_latency": "e2el_per_token", "results_end_to_end_latency": "e2el",
}  # fmt: skip


class Value(NamedTuple):
    """One expected value, and what was read; ``None`` = nothing."""

    what: str
    expected: Any
    read: Any

    @property
    def met(self) -> bool:
        return same(self.expected, self.read)


def same(expected: Any, read: Any) -> bool:
    if isinstance(expected, str) and isinstance(read, str):
        return expected == read
    wanted = number(expected)
    if wanted is None or read is None or isinstance(read, str):
        return expected == read
    digits = len(str(expected).partition(".")[2]) if isinstance(expected, str) or wanted != int(wanted) else 2
    return math.isclose(wanted, read, rel_tol=1e-8) or abs(wanted - read) <= 0.5001 * 10.0**-digits


def number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(str(value).split("·")[0])
    except ValueError:
        return None


def stat(run: ImportedRun, metric: str, which: str) -> float | None:
    stats = run.stats.get(metric)
    if stats is None:
        return None
    which = {"avg": "mean", "median": "p50"}.get(which, which)
    return stats.mean if which == "mean" else stats.percentiles.get(which)


# Printed blocks


def block_values(expected: dict[str, Any], run: ImportedRun) -> Iterator[Value]:
    for label, value in expected.items():
        if label == "labels_in_block":
            yield Value(label, value, len(run.shown))
        elif label != "inconsistencies":
            yield Value(label, value, block_value(label, value, run))


def block_value(label: str, value: Any, run: ImportedRun) -> Any:
    key = label.lower()
    latency = serving_text._LATENCY.match(key)
    if latency:
        return stat(run, serving_text._METRICS[latency["metric"]], latency["stat"])
    if key in serving_text._NUMBERS:
        return run.numbers.get(serving_text._NUMBERS[key])
    if key in serving_text._RATES:
        return run.conditions.arrivals if value == "inf" else run.conditions.request_rate
    return getattr(run.conditions, serving_text._CONDITIONS[key])


# Flat JSON of vLLM, SGLang and InferenceX


def flat_values(expected: dict[str, Any], run: ImportedRun) -> Iterator[Value]:
    for key, value in expected.items():
        yield Value(key, value, flat_value(key, value, run))


def flat_value(key: str, value: Any, run: ImportedRun) -> Any:
    latency = serving_json._LATENCY.match(key)
    if latency:
        read = stat(run, serving_json._METRICS[latency["metric"]], latency["stat"])
        return read / 1000 if read is not None and not latency["unit"] else read
    if key in serving_json._NUMBERS:
        return run.numbers.get(serving_json._NUMBERS[key])
    if key == "request_rate":
        return run.conditions.arrivals if value == "inf" else run.conditions.request_rate
    if key in serving_json._CONDITIONS:
        return getattr(run.conditions, serving_json._CONDITIONS[key])
    read = run.conditions.labels.get(key)
    return number(read) if number(value) is not None else read


# The others: a name of the index, and where it must have gone


def of(name: str, scale: float = 1.0) -> Callable[[ImportedRun], Any]:
    def get(run: ImportedRun) -> Any:
        metric, _, which = name.partition(".")
        value = stat(run, metric, which) if which else run.numbers.get(metric)
        return None if value is None else value * scale

    return get


def condition(name: str) -> Callable[[ImportedRun], Any]:
    return lambda run: getattr(run.conditions, name)


def label(name: str) -> Callable[[ImportedRun], Any]:
    return lambda run: run.conditions.labels.get(name)


S = 0.001
OTHERS: dict[str, Callable[[ImportedRun], Any]] = {
    "aiperf_version": lambda run: run.source.tool_version,
    "request_count": of("completed"),
    "request_throughput": of("request_throughput"),
    "output_token_throughput": of("output_throughput"),
    "ttft_ms_avg": of("ttft.mean"),
    "ttft_ms_p99": of("ttft.p99"),
    "itl_ms_avg": of("tpot.mean"),
    "request_latency_ms_avg": of("e2el.mean"),
    "out_tok_s": of("output_throughput"),
    "num_concurrency": condition("max_concurrency"),
    "num_requests": of("attempted"),
    "run_duration_s": of("duration_s"),
    "mean_output_throughput": of("output_throughput"),
    "rps": of("request_throughput"),
    "ttft_mean_s": of("ttft.mean", S),
    "ttft_p99_s": of("ttft.p99", S),
    "tpot_mean_s": of("tpot.mean", S),
    "itl_mean_s": of("itl_tokens.mean", S),
    "e2e_mean_s": of("e2el.mean", S),
    "framework": condition("engine"),
    "model": condition("model"),
    "num_concurrent_requests": condition("max_concurrency"),
    "results_ttft_s_mean": of("ttft.mean", S),
    "results_ttft_s_quantiles_p99": of("ttft.p99", S),
    "results_inter_token_latency_s_mean": of("e2el_per_token.mean", S),
    "results_end_to_end_latency_s_mean": of("e2el.mean", S),
    "results_mean_output_throughput_token_per_s": of("output_throughput"),
    "results_num_completed_requests": of("completed"),
    "results_number_errors": of("failed"),
    "concurrency": condition("max_concurrency"),
    "input_token_length": condition("input_tokens"),
    "output_token_length": condition("output_tokens"),
    "first-time-to-token_mean_in_ms": of("ttft.mean"),
    "throughput_token_per_s": of("output_throughput"),
    "latency_ms_per_token": of("e2el_per_token.mean"),
    "count": of("completed"),
    "failures": of("failed"),
    "errors": of("failed"),
    "requested_rate": condition("request_rate"),
    "achieved_rate": of("achieved_rate"),
    "schedule_delay_mean_s": of("schedule_delay.mean", S),
    "output_tok_s": of("output_throughput"),
    "strategy": label("strategy"),
    "rate": condition("request_rate"),
    "rps_mean": of("request_throughput"),
    "ttft_ms_mean": of("ttft.mean"),
    "itl_ms_mean": of("tpot.mean"),
    "tpot_ms_mean": of("tpot_over_n.mean"),
    "request_latency_SECONDS_mean": of("e2el.mean", S),
    "request_latency_s_mean": of("e2el.mean", S),
    "comp": of("completed"),
    "inc": of("incomplete"),
    "err": of("failed"),
    "hw": label("hw"),
    "conc": condition("max_concurrency"),
    "tp": lambda run: number(run.conditions.labels.get("tp")),
    "offloading": label("offloading"),
    "num_requests_total": of("attempted"),
    "num_requests_successful": of("completed"),
    "mean_ttft": of("ttft.mean", S),
    "p95_ttft": of("ttft.p95", S),
    "mean_tpot": of("tpot.mean", S),
    "mean_itl": of("tpot.mean", S),
    "mean_e2el": of("e2el.mean", S),
    "output_tput_tps": of("output_throughput"),
    "tput_per_gpu": of("throughput_per_gpu"),
    "duration_seconds": of("duration_s"),
    "request_rate": condition("request_rate"),
    "total_requests": of("attempted"),
    "success_count": of("completed"),
    "error_count": of("failed"),
    "ttft_p50_ms": of("ttft.p50"),
    "ttft_p99_ms": of("ttft.p99"),
    "tpot_p50_ms": of("tpot.p50"),
    "itl_p50_ms": of("itl.p50"),
    "requests_per_sec": of("attempts_per_s"),
    "throughput_tokens_per_sec": of("output_throughput"),
    "first_ttft_ms": lambda run: first(run)[0] / 1e6,
    "first_ttft_s": lambda run: first(run)[0] / 1e9,
    "first_request_latency_ms": lambda run: first(run)[1] / 1e6,
    "first_e2e_s": lambda run: first(run)[1] / 1e9,
    "first_chunks": lambda run: first(run)[2],
    "total_requests_digest": of("attempted"),
    "successful_requests": of("completed"),
    "errored_requests": of("failed"),
    "incomplete_requests": of("incomplete"),
    "backend_model": condition("model"),
    "prompt_tokens": condition("input_tokens"),
    "output_tokens": condition("output_tokens"),
    "ttft_mean_ms": of("ttft.mean"),
    "itl_mean_ms": of("tpot.mean"),
    "itl_p99_ms": of("tpot.p99"),
    "throughput_mean_rps": of("request_throughput"),
    "output_tokens_per_second_mean": of("output_throughput"),
    "duration": of("duration_s"),
}
NOT_TAKEN = frozenset(
    {"inconsistencies", "labels_in_block", "schema_version", "was_cancelled", "benchmark_id", "run_id", "type",
     "start_time", "end_time", "start_time_readable", "end_time_readable", "metrics_time_unit", "version", "see",
     "tokens_per_second_mean", "tokens_per_second_p99", "output_tokens_per_second_p99", "throughput_p99_rps",
     "guidellm_version", "benchmarks", "records", "results"}
)  # fmt: skip
LEFT_OUT = {
    "request_latency_mean_ms": "request_latency_mean_ms", "request_latency_p99_ms": "request_latency_p99_ms",
    "time_per_output_token_mean_ms": "time_per_output_token", "time_per_output_token_p99_ms": "time_per_output_token",
}  # fmt: skip


def first(run: ImportedRun) -> tuple[float, float, int]:
    """TTFT and latency in ns, and the gaps between chunks, of the first request."""
    assert run.facts
    record = run.facts.records[0]
    assert record.sent_ns is not None
    assert record.end_ns is not None
    return record.chunk_ns[0] - record.sent_ns, record.end_ns - record.sent_ns, len(record.chunk_ns) - 1


def other_values(expected: dict[str, Any], run: ImportedRun) -> Iterator[Value]:
    for key, value in expected.items():
        if key in LEFT_OUT:
            yield Value(f"{key} left out", True, any(LEFT_OUT[key] in left.what for left in run.left_out))
        elif key not in NOT_TAKEN:
            yield Value(key, value, OTHERS[key](run))


# A file


def values_of(entry: dict[str, Any]) -> list[Value]:
    """Everything that the index expects of a file, beside what is read."""
    try:
        imported: Imported | None = read_path(RESULTS / entry["file"])
    except FormatError:
        imported = None
    expected = entry["expected"]
    if is_negative(entry):
        return [Value("refused", True, imported is None)]
    if imported is None:
        return [Value("read", True, False)]
    if expected is None or "see" in expected:
        return [Value("runs", True, bool(imported.runs))]
    return list(_matched(entry["file"], expected, imported.runs))


def is_negative(entry: dict[str, Any]) -> bool:
    placeholder = isinstance(entry["expected"], list) and any(
        re.fullmatch(r"[x.]+|N", str(value)) for value in entry["expected"][0].values()
    )
    return "NEGATIVE" in entry["file"] or "NEGATIVE" in entry["traps"] or placeholder or "metadata" in entry["file"]


def _matched(name: str, expected: Any, runs: tuple[ImportedRun, ...]) -> Iterator[Value]:
    if isinstance(expected, dict):
        yield from _of_object(name, expected, runs)
        return
    matched = runs[: len(expected)]
    yield Value("runs", True, len(runs) >= len(expected))
    for item, run in zip(expected, matched, strict=True):
        reader = _reader(name)
        yield from reader(item, run)


def _reader(name: str) -> Callable[[dict[str, Any], ImportedRun], Iterator[Value]]:
    if name.startswith(("vllm_text", "vllm_log", "sglang_text", "evalscope")):
        return block_values
    return flat_values if name.endswith(".jsonl") or name.startswith("inferencex_") else other_values


def _of_object(name: str, expected: dict[str, Any], runs: tuple[ImportedRun, ...]) -> Iterator[Value]:
    if "first" in expected:
        yield Value("records", expected["records"], len(runs))
        yield from other_values(expected["first"], runs[0])
        yield from other_values(expected["last"], runs[-1])
    elif all(isinstance(value, dict) for value in expected.values()) and "mean" not in expected:
        yield Value("runs", len(expected), len(runs))
        for item, run in zip(expected.values(), runs, strict=False):
            yield from other_values(item, run)
    else:
        yield from _of_one(name, expected, runs)


def _of_one(name: str, expected: dict[str, Any], runs: tuple[ImportedRun, ...]) -> Iterator[Value]:
    run = runs[0]
    if "benchmarks" in expected:
        yield Value("benchmarks", expected["benchmarks"], len(runs))
    if "records" in expected:
        assert run.facts
        yield Value("records", expected["records"], len(run.facts.records))
    if "successful" in expected:
        names = {"successful": "completed", "errored": "failed", "incomplete": "incomplete", "total": "attempted"}
        for status, count in expected["successful"].items():
            yield Value(status, count, run.numbers.get(names[status]))
        expected = {key: value for key, value in expected.items() if key != "successful"}
    reader = flat_values if name.startswith("inferencex_") else other_values
    yield from reader(expected, run)


def index() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads((RESULTS / "INDEX.json").read_text("utf-8"))
    return listed


def main() -> int:
    """The table."""
    met = total = 0
    print(f"{'file':76} {'values met':>12}")
    for entry in index():
        found = values_of(entry)
        good = sum(value.met for value in found)
        met, total = met + good, total + len(found)
        print(f"{entry['file']:76} {good:>5} / {len(found)}")
        for value in found:
            if not value.met:
                print(f"    {value.what}: expected {value.expected!r}, read {value.read!r}")
    print(f"{len(index())} files, {met} of {total} values met")
    return 0 if met == total else 1


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(main())
