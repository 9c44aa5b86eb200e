"""One small file of each other tool, and what its own definitions must become."""

import json
from typing import Any

import pytest

from foreign import one, several
from withstand.errors import FormatError
from withstand.interop.checks import joint_doubts, run_doubts
from withstand.interop.read import read_text
from withstand.metrics.doubts import DoubtKind


def spread(mean: float, **more: float) -> dict[str, Any]:
    return {"mean": mean, "median": mean, "std_dev": 1.0, "count": 4, "total_sum": 4 * mean, **more}


def guidellm(tpot_ms: float) -> dict[str, Any]:
    """Four answers of 20 tokens: TTFT 50 ms, 10 ms a token, 240 ms in all."""
    good = {
        "requests_per_second": 2.0, "request_concurrency": 1.0, "request_latency": 0.24, "output_token_count": 20.0,
        "prompt_token_count": 10.0, "time_to_first_token_ms": 50.0, "time_per_output_token_ms": tpot_ms,
        "inter_token_latency_ms": 10.0, "output_tokens_per_second": 40.0,
    }  # fmt: skip
    metrics = {name: {"successful": spread(value), "total": spread(value)} for name, value in good.items()}
    totals = {"successful": 4, "errored": 0, "incomplete": 1, "total": 5}
    strategy = {"type_": "constant", "rate": 2.0}
    return {
        "benchmarks": [
            {"args": {"strategy": strategy}, "duration": 2.0, "metrics": metrics, "request_totals": totals,
             "worker": {"backend_model": "m"}, "requests": {"successful": []}}
        ]
    }  # fmt: skip


def test_guidellm_has_seconds_beside_ms_and_its_itl_is_a_tpot() -> None:
    run = one(guidellm(9.5))
    assert run.stats["e2el"].mean == pytest.approx(240)
    assert run.stats["tpot"].mean == 10
    assert "itl" not in run.stats
    assert run.numbers["incomplete"] == 1
    assert run.conditions.model == "m"


@pytest.mark.parametrize(("tpot_ms", "name"), [(9.5, "tpot_over_n"), (12.0, "e2el_per_token")])
def test_guidellm_s_tpot_is_told_by_its_arithmetic(tpot_ms: float, name: str) -> None:
    assert one(guidellm(tpot_ms)).stats[name].mean == tpot_ms


def test_guidellm_s_tpot_that_fits_nothing_is_left_out() -> None:
    run = one(guidellm(77.0))
    assert not {"tpot_over_n", "e2el_per_token"} & run.stats.keys()
    assert any("changed between versions" in left.reason for left in run.left_out)


def test_guidellm_s_rate_over_time_is_no_throughput_where_it_is_not_the_count() -> None:
    report = guidellm(9.5)
    report["benchmarks"][0]["metrics"]["output_tokens_per_second"]["successful"]["mean"] = 80.0
    run = one(report)
    assert run.numbers["output_throughput"] == 40.0
    assert any("a mean of the rate over time" in left.reason for left in run.left_out)


def test_guidellm_s_csv_has_its_json_s_numbers() -> None:
    listed = "[1, 2, 3, 4, 5, 40, 60, 70, 80, 90, 99]"
    columns = [
        ("Run Info", "Run ID", "", "r"),
        ("Benchmark", "Strategy", "", "concurrent@4"),
        ("Timings", "Duration", "Sec", "2"),
        ("Request Counts", "Successful", "", "4"),
        ("Request Latency", "Successful Sec", "Mean", "0.24"),
        ("Time to First Token", "Successful ms", "Mean", "50"),
        ("Time to First Token", "Successful ms", "Median", "50"),
        ("Time to First Token", "Successful ms", "Percentiles", listed),
        ("Inter Token Latency", "Successful ms", "Mean", "10"),
        ("Inter Token Latency", "Successful ms", "Median", "10"),
        ("Inter Token Latency", "Successful ms", "Percentiles", listed),
    ]
    rows = list(zip(*columns, strict=True))
    text = "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)
    run = one(text)
    assert run.stats["ttft"].percentiles["p99"] == 90
    assert (run.stats["ttft"].percentiles["p50"], run.stats["ttft"].max) == (50, 99)
    assert "p99" not in run.stats["tpot"].percentiles, "a median outside of its quarters: the list is something else"
    assert (run.stats["e2el"].mean, run.stats["tpot"].mean) == (240.0, 10.0)
    assert (run.conditions.max_concurrency, run.conditions.arrivals) == (4, "inf")


def test_a_stranger_s_digest_with_seconds_under_ms_is_found_out() -> None:
    run = one({"type": "generative_benchmark", "ttft_mean_ms": 1006.2, "request_latency_mean_ms": 2.33,
               "successful_requests": 5, "duration": 60.0})  # fmt: skip
    assert "e2el" not in run.stats
    assert any("the unit is not ms" in left.reason for left in run.left_out)


def aiperf(**more: Any) -> dict[str, Any]:
    def metric(unit: str, avg: float) -> dict[str, Any]:
        return {"unit": unit, "avg": avg, "p50": avg, "p99": avg, "std": 0.5}

    return {
        "request_throughput": {"unit": "requests/sec", "avg": 4.0},
        "request_latency": metric("ms", 240.0),
        "request_count": {"unit": "requests", "avg": 8.0},
        "time_to_first_token": metric("ms", 50.0),
        "inter_token_latency": metric("ms", 10.0),
        "inter_chunk_latency": metric("ms", 10.0),
        "goodput": None,
        "benchmark_duration": {"unit": "sec", "avg": 2.0},
        "was_cancelled": False,
        "input_config": {"endpoint": {"model_names": ["m"]}, "loadgen": {"concurrency": 4}},
        **more,
    }


def test_aiperf_s_itl_is_a_tpot_and_its_chunk_gaps_are_the_itl() -> None:
    run = one(aiperf(inter_chunk_latency={"unit": "ms", "avg": 48.0}))
    assert (run.stats["tpot"].mean, run.stats["itl"].mean) == (10.0, 48.0)
    assert (run.numbers["completed"], run.numbers["duration_s"]) == (8, 2.0)
    assert (run.conditions.max_concurrency, run.conditions.model) == (4, "m")
    assert "request_goodput" not in run.numbers


def test_aiperf_s_units_are_read_and_an_unknown_one_is_not_guessed() -> None:
    run = one(aiperf(time_to_first_token={"unit": "s", "avg": 0.05}, request_latency={"unit": "fortnights", "avg": 1}))
    assert run.stats["ttft"].mean == 50.0
    assert "e2el" not in run.stats
    assert any("fortnights" in left.reason for left in run.left_out)


def test_aiperf_s_records_are_facts_without_the_warm_up() -> None:
    def line(start_ns: int, phase: str = "profiling", **more: Any) -> str:
        metrics = {
            "time_to_first_token": {"value": 50.0, "unit": "ms"}, "request_latency": {"value": 70.0, "unit": "ms"},
            "inter_chunk_latency": {"value": [10.0, 10.0], "unit": "ms"},
            "output_sequence_length": {"value": 3, "unit": "tokens"},
        }  # fmt: skip
        metadata = {"request_start_ns": start_ns, "benchmark_phase": phase, "was_cancelled": False}
        return json.dumps({"metadata": metadata, "metrics": metrics, "error": None, **more})

    failed = line(10**18 + 10**9, error={"code": 429, "message": "429 Too Many Requests"})
    run = one("\n".join([line(10**18, "warmup"), line(10**18), failed]))
    assert run.facts is not None
    good, bad = run.facts.records
    assert good.chunk_ns == [50_000_000, 60_000_000, 70_000_000]
    assert bad.status.value == "limited"
    assert run.numbers["completed"] == 1


def test_aiperf_s_csv_and_tables_say_the_same_as_its_json() -> None:
    csv = (
        "Metric,avg,min,max,p50,p99\nInter Token Latency (ms),10.00,9,11,10,11\n"
        "Request Latency (ms),240,239,241,240,241\n"
        "\nMetric,Value\nRequest Count,8.00\nBenchmark Duration (sec),2.00\n"
    )
    assert one(csv).stats["tpot"].mean == 10.0
    assert one(csv).numbers["completed"] == 8
    drawn = """\
                 NVIDIA GenAI-Perf | LLM Metrics
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┓
┃                         Statistic ┃      avg ┃      p99 ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━┩
│          Time to first token (ms) │    13.68 │    18.81 │
│              Request latency (ms) │ 1,915.41 │ 2,016.50 │
│ Output token throughput (per sec) │   504.02 │      N/A │
└───────────────────────────────────┴──────────┴──────────┘
"""
    run = one(drawn)
    assert run.source.tool == "genai-perf"
    assert run.stats["e2el"].mean == 1915.41
    assert run.numbers["output_throughput"] == 504.02


def test_genai_bench_counts_failures_again_and_reads_its_unit() -> None:
    stats = {"ttft": {"mean": 50.0, "p99": 60.0}, "tpot": {"mean": 10.0}, "e2e_latency": {"mean": 240.0}}
    requests = [
        {"ttft": 50.0, "e2e_latency": 240.0, "num_output_tokens": 20, "error_code": None},
        {"ttft": None, "e2e_latency": None, "error_code": 500, "error_message": "boom"},
    ]
    run = one({
        "aggregated_metrics": {"stats": stats, "num_completed_requests": 1, "num_error_requests": 1, "error_rate": 0,
                               "num_requests": 2, "run_duration": 1000.0, "num_concurrency": 3},
        "individual_request_metrics": requests, "_time_unit": "ms",
    })  # fmt: skip
    assert run.stats["ttft"].mean == pytest.approx(50.0)
    assert run.numbers["duration_s"] == 1.0
    assert run.facts is not None
    assert not run.facts.gaps_known
    assert "itl" not in run.stats
    assert any(left.what == "error_rate" for left in run.left_out)


def test_genai_bench_s_description_alone_is_refused_by_name() -> None:
    with pytest.raises(FormatError, match="description of a genai-bench experiment"):
        read_text(json.dumps({"benchmark_version": "0.0.2", "traffic_scenario": [], "iteration_type": "x"}), "m.json")


def test_llmperf_s_latency_a_token_is_neither_itl_nor_tpot() -> None:
    summary = {
        "results_ttft_s_mean": 0.25, "results_ttft_s_quantiles_p99": 0.4, "results_inter_token_latency_s_mean": 0.03,
        "results_end_to_end_latency_s_mean": 3.0, "results_num_completed_requests": 100,
        "results_num_completed_requests_per_min": 120.0, "results_number_output_tokens_min": "550",
        "results_number_errors": 2, "num_concurrent_requests": 5,
    }  # fmt: skip
    run = one(summary)
    assert run.stats["e2el_per_token"].mean == pytest.approx(30)
    assert not {"itl", "tpot"} & run.stats.keys()
    assert run.numbers["request_throughput"] == pytest.approx(2.0)
    assert len(several({"1": summary, "2": summary})) == 2


def test_inference_perf_s_gaps_and_delays_have_names_of_their_own() -> None:
    latency = {name: {"mean": value, "median": value, "p99.9": value} for name, value in {
        "request_latency": 0.5, "time_to_first_token": 0.05, "time_per_output_token": 0.004,
        "inter_token_latency": 0.004, "normalized_time_per_output_token": 0.008}.items()}  # fmt: skip
    load = {"count": 60, "schedule_delay": {"mean": -0.001}, "requested_rate": 2.0, "achieved_rate": 1.9}
    run = one({"load_summary": load, "successes": {"count": 60, "latency": latency}, "failures": {"count": 0}})
    assert run.stats["ttft"].percentiles == {"p50": 50.0, "p99.9": 50.0}
    assert run.stats["itl_tokens"].mean == 4.0
    assert run.stats["schedule_delay"].mean == -1.0
    assert "itl" not in run.stats


def test_a_server_s_own_histogram_is_not_a_client_s_latency() -> None:
    run = one({"load_summary": {}, "successes": {"count": 9, "time_to_first_token": {"mean": 1.2}}, "failures": {}})
    assert run.stats["server_ttft"].mean == 1200
    assert "ttft" not in run.stats


def test_inferencemax_is_in_seconds_and_a_copied_itl_is_none() -> None:
    record = {"hw": "h", "conc": 16, "mean_ttft": 29.0, "mean_tpot": 0.09, "mean_itl": 0.09, "p90_tpot": 0.1,
              "p90_itl": 0.1, "mean_intvty": 11.0, "num_requests_successful": 5, "framework": ""}  # fmt: skip
    first, second = several([record, record | {"p90_itl": 0.2}])
    assert first.stats["ttft"].mean == 29_000
    assert "itl" not in first.stats
    assert second.stats["itl"].percentiles["p90"] == 200
    assert first.conditions.engine is None


def test_llm_d_s_units_are_those_it_names() -> None:
    report = """\
version: '0.1'
scenario:
  model: {name: m}
  load: {name: inference-perf}
metrics:
  time: {duration: 16.5, start: 100.0, stop: 90.0}
  requests: {total: 32, failures: 1, incomplete: 1}
  latency:
    time_to_first_token: {units: s, mean: 0.05, p50: 0.04}
    request_latency: {units: ms, mean: 240}
    inter_token_latency: {units: parsec, mean: 1}
  throughput: {requests_per_sec: 1.8}
"""
    run = one(report)
    assert run.source.tool == "inference-perf"
    assert (run.stats["ttft"].mean, run.stats["e2el"].mean) == (50.0, 240.0)
    assert "itl" not in run.stats
    assert run.numbers["completed"] == 30
    assert any("before it starts" in remark for remark in run.remarks)


def test_evalscope_s_tables_are_in_seconds() -> None:
    text = """\
+-----------------------------------+------------+
| Key                               |      Value |
+===================================+============+
| Time taken for tests (s)          |     9.5    |
| Number of concurrency             |    50      |
| Request rate (req/s)              |    -1      |
| Succeed requests                  |  1000      |
| Average time to first token (s)   |     0.1131 |
+-----------------------------------+------------+
Percentile results:
+-------------+----------+-------------+
| Percentiles | TTFT (s) | Latency (s) |
+-------------+----------+-------------+
|     50%     |  0.0949  |   0.4225    |
|     99%     |  0.4302  |   0.8161    |
+-------------+----------+-------------+
"""
    run = one(text)
    assert run.stats["ttft"].mean == pytest.approx(113.1)
    assert run.stats["e2el"].percentiles == {"p50": pytest.approx(422.5), "p99": pytest.approx(816.1)}
    assert (run.conditions.max_concurrency, run.conditions.arrivals) == (50, "inf")


def test_evalscope_s_percentiles_are_read_by_row_and_by_column() -> None:
    rows = [{"Percentiles": "50%", "TTFT (s)": 0.1, "TPOT (s)": 0.01}, {"Percentiles": "99%", "TTFT (s)": 0.2}]
    columns = {"Percentiles": ["50%", "99%"], "TTFT (s)": [0.1, 0.2], "TPOT (s)": [0.01, None]}
    for value in (rows, columns):
        run = one(value)
        assert run.stats["ttft"].percentiles == {"p50": 100.0, "p99": 200.0}
        assert run.stats["tpot"].percentiles == {"p50": 10.0}


def test_a_load_test_s_csv_counts_failed_requests_in_its_rate() -> None:
    header = (
        "concurrency,total_requests,success_count,error_count,ttft_p50_ms,requests_per_sec,throughput_tokens_per_sec"
    )
    good, bad = several(f"{header}\n1,20,20,0,819.15,0.045,26.9\n8,20,10,10,71432.73,0.057,13.61\n")
    assert good.numbers["request_throughput"] == 0.045
    assert "request_throughput" not in bad.numbers
    assert bad.numbers["attempts_per_s"] == 0.057


def test_a_load_test_s_speed_of_single_requests_is_no_throughput() -> None:
    text = """\
| **Model** | `some-model` |

## Phase 2

| Concurrency | Success% | TTFT p50 | TTFT p90 | Total p90 | Tok/s |
|:---:|:---:|---:|---:|---:|---:|
| 1 | 100% | 408ms | 446ms | 4798ms | 36.5 |
| 2 | 100% | 4xxms | 477ms | 4842ms | 36.7 |
"""
    first, second = several(text)
    assert first.stats["speed_per_request"].mean == 36.5
    assert "output_throughput" not in first.numbers
    assert (first.conditions.model, first.conditions.max_concurrency) == ("some-model", 1)
    assert "p50" not in second.stats["ttft"].percentiles


CONSOLE = """\
✔ done
i Run Summary Info
|==============|==========|=====|======|=====|=====|=======|=====|
| Benchmark    | Timings       || Requests       ||| Output Tokens ||
| Strategy     | Start    | Dur | Comp | Inc | Err | Comp  | Inc |
|              |          | Sec | Tot  | Tot | Tot | Tot   | Tot |
|--------------|----------|-----|------|-----|-----|-------|-----|
| concurrent@3 | 12:26:36 | 1.0 | 16   | 0   | 4   | 192.0 | 0.0 |
|==============|==========|=====|======|=====|=====|=======|=====|

i Request Latency Statistics (Completed Requests)
|==============|=============|========|============|=======|======|======|
| Benchmark    | Request Latency     || TTFT              || ITL        ||
| Strategy     | Sec                 || ms                || ms         ||
|              | Mean        | p95    | Mean       | p95   | Mdn  | p95  |
|--------------|-------------|--------|------------|-------|------|------|
| concurrent@3 | 0.2 ± 0.001 | 12.3*  | 52.3 ± 1.5 | 62.8* | 10.0 | 10.1 |
|==============|=============|========|============|=======|======|======|

i Server Throughput Statistics (All Requests)
|==============|=======|======|=========|===============|
| Benchmark    | Requests             ||| Output Tokens |
| Strategy     | Concurrency || Per Sec | Per Sec       |
|              | Mdn   | Mean | Mean                  ||
|--------------|-------|------|---------|---------------|
| concurrent@3 | 3.0   | 2.6  | 19.9    | 191.3         |
|==============|=======|======|=========|===============|
"""


def test_guidellm_s_console_tables_are_joined_and_their_rates_are_of_all_requests() -> None:
    run = one(CONSOLE)
    assert (run.conditions.max_concurrency, run.conditions.arrivals) == (3, "inf")
    assert [run.numbers[n] for n in ("completed", "failed", "total_output_tokens", "duration_s")] == [16, 4, 192, 1]
    assert (run.numbers["attempts_per_s"], run.numbers["concurrency_mean"]) == (19.9, 2.6)
    assert run.stats["ttft"].mean == 52.3
    assert run.stats["ttft"].percentiles == {"p95": 62.8}
    assert run.stats["tpot"].percentiles == {"p50": 10.0, "p95": 10.1}
    assert run.stats["e2el"].percentiles == {"p95": 12_300}
    assert run.stats["e2el"].mean is None, "a tenth of a second is no digit of 0.2 s"


def test_guidellm_s_old_csv_has_its_json_s_numbers() -> None:
    listed = "[1, 2, 3, 4, 5, 40, 60, 70, 80, 90, 99]"
    cells = {
        "Type": "b", "Run Id": "r", "Duration": "2", "Successful Requests": "4", "Total Requests": "5",
        "Successful Request latency mean": "0.24", "Successful Time to first token ms mean": "50",
        "Successful Time to first token ms median": "50", "Args": '{"strategy": {"type_": "constant", "rate": 2.0}}',
        "Successful Time to first token ms [min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]": listed,
        "Errored Time to first token ms mean": "7",
    }  # fmt: skip
    quoted = ['"' + text.replace('"', '""') + '"' for text in cells.values()]
    run = one(",".join(f'"{name}"' for name in cells) + "\n" + ",".join(quoted) + "\n")
    assert (run.stats["e2el"].mean, run.stats["ttft"].mean, run.stats["ttft"].percentiles["p99"]) == (240.0, 50.0, 90.0)
    assert (run.numbers["completed"], run.conditions.request_rate) == (4, 2.0)


def test_guidellm_s_failed_requests_need_no_end() -> None:
    report = guidellm(9.5)
    item = report["benchmarks"][0]
    item["request_totals"] = {"successful": 1, "errored": 1, "incomplete": 0, "total": 2}
    times = {"request_start": 1.0, "first_token_iteration": 1.05, "last_token_iteration": 1.24, "request_end": 1.25}
    good = {"info": {"timings": times}, "output_tokens": 20}
    bad = {"info": {"timings": {"request_start": 1.5, "request_end": None}, "error": "500 no"}}
    item["requests"] = {"successful": [good], "errored": [bad]}
    run = one(report)
    assert run.facts is not None
    assert [record.status.value for record in run.facts.records] == ["ok", "http_error"]


def test_inference_perf_s_single_requests_are_facts_without_gaps() -> None:
    answer = {"output_tokens": 3, "output_token_times": [10.05, 10.05, 10.07]}
    good = {"start_time": 10.0, "end_time": 10.08, "error": None,
            "info": {"request_metrics": {"text": {"input_tokens": 9}}, "response_metrics": answer}}  # fmt: skip
    bad = {"start_time": 11.0, "end_time": 11.5, "info": {}, "error": {"error_type": "T", "error_msg": "429 no"}}
    run = one([good, bad])
    assert run.facts is not None
    assert [record.status.value for record in run.facts.records] == ["ok", "limited"]
    assert (run.stats["ttft"].mean, run.numbers["total_input_tokens"]) == (pytest.approx(50), 9)
    assert "itl" not in run.stats


def test_a_file_of_one_aiperf_record_is_a_run() -> None:
    metrics = {"time_to_first_token": {"value": 50.0, "unit": "ms"}, "request_latency": {"value": 70.0, "unit": "ms"}}
    run = one({"metadata": {"request_start_ns": 10**18}, "metrics": metrics})
    assert (run.numbers["completed"], run.stats["ttft"].mean) == (1, 50.0)


def test_a_run_s_whole_time_is_no_time_of_its_rate() -> None:
    report = """\
version: 0.2.1
run:
  time: {duration: PT9S}
results:
  request_performance:
    aggregate:
      requests: {total: 30, failures: 6}
      latency:
        time_to_first_token: {units: s, mean: 0.05}
      throughput:
        request_rate: {units: queries/s, mean: 8.0}
"""
    run = one(report)
    assert "duration_s" not in run.numbers
    assert any("the whole run" in left.reason for left in run.left_out)


@pytest.mark.parametrize(
    "row",
    ['Request Latency (ms),"1,000.000,"1,002.00",9.0', "Request Latency (ms),5.00,6.00,7.00,8.00", '"Request Lat'],
)
def test_a_csv_s_broken_row_is_told_and_not_read(row: str) -> None:
    imported = read_text(
        f"Metric,avg,p50,p99\nTime to First Token (ms),5.0,5.0,6.0\nRequest Throughput,1,,\n{row}\n", "f"
    )
    (run,) = imported.runs
    assert "e2el" not in run.stats
    assert imported.refused or run.left_out


def test_a_number_that_a_narrow_terminal_has_broken_is_none() -> None:
    drawn = """\
NVIDIA GenAI-Perf
│ Statistic │ avg │ p99 │
│ Request latency (ms) │ 1,9… │ 2,016.5 │
│ Time to first token (ms) │ 13.6 │ 18.8 │
│  │ 8 │  │
"""
    run = one(drawn)
    assert run.stats["e2el"].mean is None
    assert run.stats["ttft"].mean is None
    assert run.stats["ttft"].percentiles == {"p99": 18.8}


CURVES = {
    "charts": {
        "engine_concurrency": {
            "x": [1, 4, 16],
            "ttft_p50_ms": [100, 410.5, 1600],
            "latency_p90_s": [1.5, 2, 4],
            "tokens_per_sec": [50, 51, 52],
            "success_pct": [100, 100, 75],
            "notes": ["a", "b", "c"],
            "cold": [1.0, 2.0, 3.0],
            "short": [1, 2],
        },
        "by_engine": {"x": ["one", "other"], "ttft_p50_ms": [1, 2]},
        "by_something": {"x": [1, 2], "ttft_p50_ms": [1, 2]},
    },
    "steps": {"target_rps": [1, "inf"], "ttft_mean_ms": [1, 2], "tok_s_mean_per_request": [30, 20]},
}


def test_curves_in_columns_are_a_run_a_load() -> None:
    imported = several(CURVES)
    first, second, third, odd, _, slow, burst = imported
    assert [run.conditions.max_concurrency for run in (first, second, third)] == [1, 4, 16]
    assert (first.conditions.arrivals, first.conditions.labels["heading"]) == ("inf", "engine_concurrency")
    assert second.stats["ttft"].percentiles == {"p50": 410.5}
    assert second.stats["e2el"].percentiles == {"p90": 2000.0}
    assert third.numbers["output_throughput"] == 52
    assert "nothing tells" in third.notes["output_throughput"]
    assert {left.what for left in first.left_out} == {"cold", "short"}
    assert odd.conditions.max_concurrency is None
    assert any("nothing tells which" in left.reason for left in odd.left_out)
    assert (slow.conditions.request_rate, burst.conditions.arrivals) == (1.0, "inf")
    assert burst.stats["speed_per_request"].mean == 20


def test_curves_raise_the_doubts_of_a_series() -> None:
    imported = several(CURVES)
    kinds = {doubt.kind for doubt in joint_doubts(imported)}
    assert {DoubtKind.FLAT_THROUGHPUT, DoubtKind.SPEED_BESIDE_THROUGHPUT} <= kinds
    assert [doubt.kind for doubt in run_doubts(imported[2])] == [DoubtKind.REQUESTS_FAILED]


@pytest.mark.parametrize(
    "curves",
    [
        {"concurrency": [1, 2]},
        {"concurrency": [1, 2], "ttft_p50_ms": [1, 2, 3]},
        {"concurrency": [1, 0], "ttft_p50_ms": [1, 2]},
        {"concurrency": [1, 2], "ttft": [1, 2], "ttft_p50": [1, 2]},
        {"concurrency": [], "ttft_p50_ms": []},
        {"concurrency": 4, "ttft_p50_ms": [1]},
    ],
)
def test_lists_that_do_not_say_what_they_are_are_no_curves(curves: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        several(curves)


@pytest.mark.parametrize("kind", [{}, [], 5, None, {"a": [1]}])
def test_guidellm_s_strategy_may_be_anything(kind: Any) -> None:
    report = guidellm(9.5)
    report["benchmarks"][0]["args"]["strategy"]["type_"] = kind
    assert one(report).conditions.arrivals is None
