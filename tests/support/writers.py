"""Whole result files of other tools, written from a known truth: JSON, JSON lines and CSV."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from truth import Sample, Sheet, Times, Truth, truths, twins

Draw = st.DrawFn
Written = tuple[Any, dict[str, float], dict[str, object]]
"""A value for JSON, what must be read from it, and the conditions."""
MEANS = {"mean": "mean", "median": "p50", "std": "std", "p90": "p90", "p99": "p99"}
S = 1000.0


def _flat(sheet: Sheet, name: str, of: Times, form: str, scale: float = 1.0) -> dict[str, float]:
    keys = {form.format(stat): ours for stat, ours in MEANS.items()}
    return sheet.spread(name, of, keys, scale)


# vLLM, SGLang, InferenceX: one flat object a run


def vllm(draw: Draw, truth: Truth) -> Written:
    """Of 2024 to 2026: with and without counts of failures, user's metadata, chosen percentiles and metrics."""
    sheet, old = Sheet(), draw(st.booleans())
    value: dict[str, Any] = {
        "date": "20260101-120000",
        "backend": "vllm",
        "model_id": truth.model,
        "num_prompts": truth.attempted,
        **draw(st.sampled_from([{}, {"gpu": "8", "note": "12.5"}, {"tensor_parallel_size": "1e999"}])),
        "request_rate": truth.rate or "inf",
        "burstiness": 1.0,
        "max_concurrency": truth.concurrency,
        "duration": sheet.put("duration_s", truth.duration_s),
        "completed": sheet.count("completed", truth.completed),
        "total_input_tokens": sheet.count("total_input_tokens", truth.input_tokens),
        "total_output_tokens": sheet.count("total_output_tokens", truth.output_tokens),
        "request_throughput": sheet.put("request_throughput", truth.per_second(truth.completed)),
        "request_goodput:" if old else "request_goodput": None,
        "output_throughput": sheet.put("output_throughput", truth.per_second(truth.output_tokens)),
        "total_token_throughput": sheet.put(
            "total_token_throughput", truth.per_second(truth.input_tokens + truth.output_tokens)
        ),
    }
    if not old:
        value |= {
            "failed": sheet.count("failed", truth.failed),
            "rtfx": 0.0,
            "label": None,
            "latencies": [0.5],
            "probe_median_e2el_ms": 3.5,
        }
    metrics = draw(st.sets(st.sampled_from(["ttft", "tpot", "itl", "e2el"])))
    for name in metrics:
        value |= _flat(sheet, name, getattr(truth, name), f"{{}}_{name}_ms")
    asked: dict[str, object] = {
        "model": truth.model,
        "num_prompts": truth.attempted,
        "max_concurrency": truth.concurrency,
        "request_rate": truth.rate,
        "arrivals": None if truth.rate else "inf",
    }
    return value, sheet.known, asked


def sglang(draw: Draw, truth: Truth) -> Written:
    """A line of ``bench_serving``: bare Infinity and NaN, several names for the same, no count of failures."""
    sheet, new = Sheet(), draw(st.booleans())
    value: dict[str, Any] = {
        "backend": "sglang",
        "dataset_name": "sharegpt",
        "request_rate": truth.rate or float("inf"),
        "max_concurrency": truth.concurrency,
        "random_input_len": 1024,
        "random_output_len": 128,
        "sharegpt_output_len": None,
        "duration": sheet.put("duration_s", truth.duration_s),
        "completed": sheet.count("completed", truth.completed),
        "total_input_tokens": sheet.count("total_input_tokens", truth.input_tokens),
        "total_output_tokens": sheet.count("total_output_tokens", truth.output_tokens),
        "total_output_tokens_retokenized": sheet.count("retokenized_output_tokens", truth.output_tokens + 1),
        "input_throughput": sheet.put("input_throughput", truth.per_second(truth.input_tokens)),
        "output_throughput": sheet.put("output_throughput", truth.per_second(truth.output_tokens)),
        "accept_length": draw(st.sampled_from([None, float("nan")])),
        "concurrency": sheet.put("concurrency_mean", 3.25),
        "server_info": {"model_path": truth.model, "duration": 1},
    }
    for name, key in {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e_latency"}.items():
        value |= _flat(sheet, name, getattr(truth, name), f"{{}}_{key}_ms")
    if new:
        value["request_throughput"] = sheet.put("request_throughput", truth.per_second(truth.completed))
    asked: dict[str, object] = {
        "model": truth.model,
        "input_tokens": None,
        "output_tokens": None,
        "num_prompts": None,
        "request_rate": truth.rate,
        "arrivals": None if truth.rate else "inf",
    }
    return value, sheet.known, asked


def inferencemax(draw: Draw, truth: Truth) -> Written:
    """Seconds, without a word of it."""
    sheet = Sheet()
    value = {
        "hw": "h200",
        "conc": truth.concurrency or 1,
        "model": truth.model,
        "framework": "sglang",
        "tp": 8,
        "num_requests_total": sheet.count("attempted", truth.attempted),
        "num_requests_successful": sheet.count("completed", truth.completed),
        "output_tput_tps": sheet.put("output_throughput", truth.per_second(truth.output_tokens)),
        "tput_per_gpu": sheet.put("throughput_per_gpu", truth.per_second(truth.output_tokens) / 8),
        "mean_intvty": 1 / truth.tpot.mean,
    }
    for name in draw(st.sets(st.sampled_from(["ttft", "tpot", "itl", "e2el"]), min_size=1)):
        value |= _flat(sheet, name, getattr(truth, name), f"{{}}_{name}", S)
    return value, sheet.known, {"model": truth.model, "engine": "sglang", "max_concurrency": truth.concurrency or 1}


# Nested JSON


def _guidellm_spread(sheet: Sheet, name: str, of: Times, scale: float = 1.0) -> dict[str, Any]:
    flat = sheet.spread(
        name, of, {"mean": "mean", "median": "p50", "std_dev": "std", "p90": "p90", "p99": "p99"}, scale
    )
    percentiles = {"p50": flat["median"], "p90": flat.pop("p90"), "p99": flat.pop("p99")}
    return {**flat, "count": 7, "percentiles": percentiles}


def guidellm(draw: Draw, truth: Truth) -> Written:
    """0.2 to 0.8: two places of totals and of the strategy; latency in seconds; a name with two meanings."""
    sheet = Sheet()
    good = {
        "time_to_first_token_ms": _guidellm_spread(sheet, "ttft", truth.ttft),
        "inter_token_latency_ms": _guidellm_spread(sheet, "tpot", truth.tpot),
        "request_latency": _guidellm_spread(sheet, "e2el", truth.e2el, S),
        "output_token_count": {
            "mean": truth.answer,
            "count": truth.completed,
            "total_sum": sheet.count("total_output_tokens", truth.output_tokens),
        },
        "prompt_token_count": {
            "mean": truth.prompt,
            "count": truth.completed,
            "total_sum": sheet.count("total_input_tokens", truth.input_tokens),
        },
        "requests_per_second": {"mean": sheet.put("request_throughput", truth.per_second(truth.completed))},
        "output_tokens_per_second": {"mean": sheet.put("output_throughput", truth.per_second(truth.output_tokens))},
    }
    bad = {"mean": 1.0, "median": 2.0, "std_dev": 3.0, "count": 9, "total_sum": 99.0, "percentiles": {"p99": 4.0}}
    metrics: dict[str, Any] = {key: {"successful": given, "errored": bad, "total": bad} for key, given in good.items()}
    metrics["request_concurrency"] = {"successful": bad, "total": {"mean": sheet.put("concurrency_mean", 2.5)}}
    totals = {
        "successful": sheet.count("completed", truth.completed),
        "errored": sheet.count("failed", truth.failed),
        "incomplete": sheet.count("incomplete", 0),
        "total": sheet.count("attempted", truth.attempted),
    }
    kind = (
        {"type_": "constant", "rate": truth.rate}
        if truth.rate
        else {"type_": "concurrent", "streams": truth.concurrency}
    )
    item: dict[str, Any] = {"duration": sheet.put("duration_s", truth.duration_s), "metrics": metrics}
    if draw(st.booleans()):
        item |= {"args": {"strategy": kind}, "request_totals": totals, "worker": {"backend_model": truth.model}}
    else:
        metrics["request_totals"] = totals
        item["config"] = {"strategy": kind, "backend": {"model": truth.model}}
    asked: dict[str, object] = {
        "model": truth.model,
        "request_rate": truth.rate,
        "arrivals": None if truth.rate else "inf",
        "max_concurrency": None if truth.rate else truth.concurrency,
    }
    return {"metadata": {"guidellm_version": "0.x"}, "benchmarks": [item]}, sheet.known, asked


_AIPERF_KEYS = {"avg": "mean", "std": "std", "p50": "p50", "p90": "p90", "p99": "p99"}
_AIPERF_UNITS = {"ms": 1.0, "sec": 1000.0, "us": 1e-3, "ns": 1e-6}


def aiperf(draw: Draw, truth: Truth) -> Written:
    """AIPerf and genai-perf: a unit beside every number, and each metric's may be another."""
    sheet = Sheet()
    value: dict[str, Any] = {}
    for tag, name in {
        "time_to_first_token": "ttft",
        "inter_token_latency": "tpot",
        "inter_chunk_latency": "itl",
        "request_latency": "e2el",
    }.items():
        unit = draw(st.sampled_from(list(_AIPERF_UNITS)))
        value[tag] = {"unit": unit, **sheet.spread(name, getattr(truth, name), _AIPERF_KEYS, _AIPERF_UNITS[unit])}
    for tag, name, number, unit in (
        ("request_count", "completed", truth.completed, "requests"),
        ("error_request_count", "failed", truth.failed, "requests"),
        ("request_throughput", "request_throughput", truth.per_second(truth.completed), "requests/sec"),
        ("output_token_throughput", "output_throughput", truth.per_second(truth.output_tokens), "tokens/sec"),
        ("benchmark_duration", "duration_s", truth.duration_s, "sec"),
        ("total_osl", "total_output_tokens", truth.output_tokens, "tokens"),
    ):
        value[tag] = {"unit": unit, "avg": sheet.put(name, number)}
    value |= {"adj_request_latency": {"unit": "ms", "avg": 1e9}, "telemetry_data": None, "goodput": None}
    about: dict[str, Any] = {
        "input_config": {"endpoint": {"model_names": [truth.model]}, "loadgen": {"concurrency": truth.concurrency}}
    }
    first = draw(st.booleans())
    whole = {"records": value, **about, "was_cancelled": False} if first else {**value, **about}
    return whole, sheet.known, {"model": truth.model, "max_concurrency": truth.concurrency}


def genai_bench(draw: Draw, truth: Truth) -> Written:
    """Seconds, or ms where it says so."""
    sheet = Sheet()
    unit, scale = draw(st.sampled_from([("s", S), ("ms", 1.0), (None, S)]))
    keys = {"mean": "mean", "stddev": "std", "p50": "p50", "p90": "p90", "p99": "p99"}
    stats: dict[str, Any] = {
        key: sheet.spread(name, getattr(truth, name), keys, scale)
        for key, name in {"ttft": "ttft", "tpot": "tpot", "e2e_latency": "e2el"}.items()
    }
    stats["num_output_tokens"] = {"sum": sheet.count("total_output_tokens", truth.output_tokens), "mean": 5}
    aggregated = {
        "stats": stats,
        "num_completed_requests": sheet.count("completed", truth.completed),
        "error_rate": 0.0,
        "num_error_requests": sheet.count("failed", truth.failed),
        "num_requests": sheet.count("attempted", truth.attempted),
        "run_duration": sheet.put("duration_s", truth.duration_s, scale=scale / S),
        "num_concurrency": truth.concurrency,
        "requests_per_second": sheet.put("request_throughput", truth.per_second(truth.completed)),
        "mean_output_throughput_tokens_per_s": sheet.put("output_throughput", truth.per_second(truth.output_tokens)),
    }
    return (
        {"aggregated_metrics": aggregated, "individual_request_metrics": [], **({"_time_unit": unit} if unit else {})},
        sheet.known,
        {"max_concurrency": truth.concurrency, "num_prompts": truth.attempted},
    )


def llmperf(draw: Draw, truth: Truth) -> Written:
    """Seconds; its latency between tokens is the whole latency by tokens; requests a minute."""
    sheet = Sheet()
    value: dict[str, Any] = {
        "version": "2023-08-31",
        "model": truth.model,
        "num_concurrent_requests": truth.concurrency,
        "results_num_completed_requests": sheet.count("completed", truth.completed),
        "results_number_errors": sheet.count("failed", truth.failed),
        "results_num_completed_requests_per_min": sheet.put(
            "request_throughput", truth.per_second(truth.completed), scale=1 / 60
        ),
        "results_mean_output_throughput_token_per_s": sheet.put(
            "output_throughput", truth.per_second(truth.output_tokens)
        ),
        "results_number_output_tokens_min": "5",
        "results_error_code_frequency": "{}",
    }
    for key, name in {
        "ttft_s": "ttft",
        "end_to_end_latency_s": "e2el",
        "inter_token_latency_s": "e2el_per_token",
    }.items():
        of = truth.e2el if name == "e2el_per_token" else getattr(truth, name)
        parts = {
            "mean": "mean",
            "stddev": "std",
            "quantiles_p50": "p50",
            "quantiles_p90": "p90",
            "quantiles_p99": "p99",
        }
        value |= sheet.spread(name, of, {f"results_{key}_{part}": ours for part, ours in parts.items()}, S)
    return value, sheet.known, {"model": truth.model, "max_concurrency": truth.concurrency}


def inference_perf(draw: Draw, truth: Truth) -> Written:
    """Seconds; gaps by token, and how late it was itself, which may be negative."""
    sheet = Sheet()
    keys = {"mean": "mean", "median": "p50", "p90": "p90", "p99": "p99"}
    names = {
        "request_latency": "e2el",
        "time_to_first_token": "ttft",
        "time_per_output_token": "tpot",
        "inter_token_latency": "itl_tokens",
    }
    latency = {
        key: sheet.spread(name, truth.itl if name == "itl_tokens" else getattr(truth, name), keys, S)
        for key, name in names.items()
    }
    good = {
        "count": sheet.count("completed", truth.completed),
        "latency": latency,
        "throughput": {
            "requests_per_sec": sheet.put("request_throughput", truth.per_second(truth.completed)),
            "output_tokens_per_sec": sheet.put("output_throughput", truth.per_second(truth.output_tokens)),
        },
        "prompt_len": {"mean": sheet.put("mean_input_tokens", truth.prompt)},
    }
    load = {
        "count": sheet.count("attempted", truth.attempted),
        "requested_rate": truth.rate,
        "schedule_delay": {"mean": sheet.put("schedule_delay.mean", draw(st.sampled_from([-1.5, 0.25])), scale=S)},
    }
    value = {"load_summary": load, "successes": good, "failures": {"count": sheet.count("failed", truth.failed)}}
    return value, sheet.known, {"request_rate": truth.rate}


def llmd(draw: Draw, truth: Truth) -> Written:
    """0.1 and 0.2: every quantity has its unit."""
    sheet, new = Sheet(), draw(st.booleans())
    keys = {"mean": "mean", "stddev": "std", "p50": "p50", "p90": "p90", "p99": "p99"}
    latency: dict[str, Any] = {}
    names = {
        "time_to_first_token": "ttft",
        "time_per_output_token": "tpot",
        "inter_token_latency": "itl",
        "request_latency": "e2el",
    }
    for key, name in names.items():
        unit, scale = draw(st.sampled_from([("ms", 1.0), ("s", S), ("us", 1e-3)]))
        units = unit if name in {"ttft", "e2el"} else f"{unit}/token"
        latency[key] = {"units": units, **sheet.spread(name, getattr(truth, name), keys, scale)}
    rate, tokens = truth.per_second(truth.completed), truth.per_second(truth.output_tokens)
    rates = {"request_throughput": rate, "output_throughput": tokens}
    told = {name: sheet.put(name, value) for name, value in rates.items()}
    throughput: dict[str, Any] = {
        "requests_per_sec": told["request_throughput"],
        "output_tokens_per_sec": told["output_throughput"],
    }
    if new:
        throughput = {
            "request_rate": {"units": "queries/s", "mean": told["request_throughput"]},
            "output_token_rate": {"units": "tokens/s", "mean": told["output_throughput"]},
        }
    measured = {
        "time": {"duration": sheet.put("duration_s", truth.duration_s)},
        "latency": latency,
        "throughput": throughput,
        "requests": {
            "total": sheet.count("attempted", truth.attempted),
            "failures": sheet.count("failed", truth.failed),
        },
    }
    sheet.count("completed", truth.completed)
    scenario = {"model": {"name": truth.model}, "load": {"name": "vllm-benchmark"}}
    if new:
        value: dict[str, Any] = {
            "version": "0.2",
            "scenario": scenario,
            "results": {"request_performance": {"aggregate": measured}},
        }
    else:
        value = {"version": "0.1", "scenario": scenario, "metrics": measured}
    return value, sheet.known, {"model": truth.model}


def evalscope(draw: Draw, truth: Truth) -> Written:
    """Four decimals of a second; newer ones have other names, and ms where they say so."""
    sheet, new = Sheet(), draw(st.booleans())
    named, unit, scale, first = ("Avg {}", "ms", 1.0, "TTFT") if new else ("Average {}", "s", S, "time to first token")
    value = {
        "Test Duration (s)" if new else "Time taken for tests (s)": sheet.put("duration_s", truth.duration_s, 4),
        "Concurrency" if new else "Number of concurrency": truth.concurrency or 1,
        "Total Requests" if new else "Total requests": sheet.count("attempted", truth.attempted),
        "Success Requests" if new else "Succeed requests": sheet.count("completed", truth.completed),
        "Failed Requests" if new else "Failed requests": sheet.count("failed", truth.failed),
        "Output Throughput (tok/s)" if new else "Output token throughput (tok/s)": sheet.put(
            "output_throughput", truth.per_second(truth.output_tokens) + 0.01, 4
        ),
        "Avg Latency (s)" if new else "Average latency (s)": sheet.put("e2el.mean", truth.e2el.mean, 4, S),
        f"{named.format(first)} ({unit})": sheet.put("ttft.mean", truth.ttft.mean, 4, scale),
        "Average package per request": 12.0,
        "Input Throughput (tok/s)": 0.0,
    }
    return value, sheet.known, {"max_concurrency": truth.concurrency or 1}


JSONS: Mapping[str, Callable[[Draw, Truth], Written]] = {
    "vllm": vllm,
    "sglang": sglang,
    "inferencemax": inferencemax,
    "guidellm": guidellm,
    "aiperf": aiperf,
    "genai_bench": genai_bench,
    "llmperf": llmperf,
    "inference_perf": inference_perf,
    "llmd": llmd,
    "evalscope": evalscope,
}


@st.composite
def json_files(draw: Draw, kind: str) -> Sample:
    """One run, or several as they are kept: a list, lines, an object by name, lines of a log."""
    written = [JSONS[kind](draw, truth) for truth in draw(st.lists(truths(), min_size=1, max_size=3))]
    assume(not twins([known for _, known, _ in written]))
    values = [value for value, _, _ in written]
    text = _laid_out(draw, values)
    return Sample(text, tuple(known for _, known, _ in written), tuple(asked for _, _, asked in written))


def _laid_out(draw: Draw, values: Sequence[Any]) -> str:
    indent = draw(st.sampled_from([None, 2]))
    texts = [json.dumps(value, indent=indent) for value in values]
    if len(texts) == 1:
        return draw(st.sampled_from([texts[0], f"{texts[0]}\n", f"\ufeff{texts[0]}", f"INFO done\n{texts[0]}\nbye\n"]))
    listed = json.dumps(list(values), indent=indent)
    keyed = json.dumps({f"run {i}": value for i, value in enumerate(values)}, indent=indent)
    return draw(st.sampled_from(["\n".join(texts), "\r\n".join(texts) + "\r\n", listed, keyed]))


# CSV


def _csv(rows: Sequence[Sequence[object]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


@st.composite
def sweep_csv(draw: Draw) -> Sample:
    """A sweep's ``summary.csv`` of vLLM, as pandas writes it."""
    written = [vllm(draw, truth) for truth in draw(st.lists(truths(), min_size=1, max_size=4))]
    names = list(dict.fromkeys(name for value, _, _ in written for name in value if name != "latencies"))
    rows = [[i, *("" if value.get(n) is None else value[n] for n in names)] for i, (value, _, _) in enumerate(written)]
    return Sample(_csv([["", *names], *rows]), tuple(known for _, known, _ in written))


@st.composite
def load_test_csv(draw: Draw) -> Sample:
    """The load tests behind seed 002: a row a level."""
    rows, runs = [], []
    for truth in draw(st.lists(truths(), min_size=1, max_size=4)):
        sheet = Sheet()
        rows.append(
            {
                "concurrency": truth.concurrency or 1,
                "total_requests": sheet.count("attempted", truth.attempted),
                "success_count": sheet.count("completed", truth.completed),
                "error_count": sheet.count("failed", truth.failed),
                "ttft_p50_ms": sheet.put("ttft.p50", truth.ttft.p50, 2),
                "ttft_p99_ms": sheet.put("ttft.p99", truth.ttft.p99, 2),
                "latency_p90_ms": sheet.put("e2el.p90", truth.e2el.p90, 2),
                "requests_per_sec": sheet.put("attempts_per_s", truth.per_second(truth.attempted), 3),
                "throughput_tokens_per_sec": sheet.put("output_throughput", truth.per_second(truth.output_tokens), 2),
            }
        )
        if not truth.failed:
            sheet.known["request_throughput"] = sheet.known["attempts_per_s"]
        runs.append(sheet.known)
    return Sample(_csv([list(rows[0]), *(list(row.values()) for row in rows)]), tuple(runs))


@st.composite
def aiperf_csv(draw: Draw) -> Sample:
    """Two tables, and telemetry behind them."""
    truth, sheet = draw(truths()), Sheet()
    rows: list[list[object]] = [["Metric", "avg", "min", "p50", "p99", "std"]]
    labels = {"Time to First Token (ms)": "ttft", "Inter Token Latency (ms)": "tpot", "Request Latency (ms)": "e2el"}
    for label, name in labels.items():
        of = getattr(truth, name)
        mean, *more = (sheet.cell(f"{name}.{w}", getattr(of, w), commas=True) for w in ("mean", "p50", "p99", "std"))
        rows.append([label, mean, "", *more])
    rows += [[], ["Metric", "Value"], ["Request Count", sheet.count("completed", truth.completed)]]
    rows += [["Benchmark Duration (sec)", sheet.cell("duration_s", truth.duration_s)]]
    rows += [["Request Throughput (requests/sec)", sheet.cell("request_throughput", 1.5 * truth.answer)]]
    rows += [[], [], ["Endpoint", "GPU_Index", "Metric", "avg"], ["h", "0", "Request Latency (ms)", "1.0"]]
    return Sample(_csv(rows), (sheet.known,))
