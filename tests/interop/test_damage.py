"""Whatever is done to a file: runs, or a refusal in one sentence; and no number that the whole file does not have."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreign import DETAILED, SGLANG_LINE, VLLM_BLOCK, VLLM_JSON
from withstand.errors import FormatError
from withstand.interop.read import read_text
from withstand.interop.shape import ImportedRun
from withstand.interop.summary import series_of, summary_of
from withstand.report.imported import imported_text
from withstand.report.json import summary_json

JSONS: list[Any] = [
    VLLM_JSON,
    DETAILED,
    [VLLM_JSON, VLLM_JSON],
    {"request_latency": {"unit": "ms", "avg": 5.0, "p99": 6.0}, "request_count": {"unit": "requests", "avg": 3}},
    {"hw": "h", "conc": 16, "mean_ttft": 29.0, "mean_tpot": 0.09, "mean_itl": 0.09, "num_requests_successful": 5},
    {"results_ttft_s_mean": 0.25, "results_num_completed_requests": 100},
    {"load_summary": {"count": 2}, "failures": {},
     "successes": {"count": 2, "latency": {"request_latency": {"mean": 1.0}}}},
    {"aggregated_metrics": {"stats": {"ttft": {"mean": 0.05}}, "num_completed_requests": 1},
     "individual_request_metrics": [{"ttft": 0.05, "e2e_latency": 1.0, "error_code": None}]},
    {"benchmarks": [
        {"metrics": {"time_to_first_token_ms": {"successful": {"mean": 5.0}}}, "request_totals": {"total": 1}}]},
    {"type": "generative_benchmark", "ttft_mean_ms": 5.0},
    {"metadata": {"request_start_ns": 1}, "metrics": {"time_to_first_token": {"value": 5.0, "unit": "ms"}}},
    {"1": {"first-time-to-token_mean_in_ms": 5.0}},
    {"Time taken for tests (s)": 1.0, "Succeed requests": 5},
    [{"ttft_s": 0.1, "end_to_end_latency_s": 0.5}],
    {"results": {"request_performance": {
        "aggregate": {"latency": {"time_to_first_token": {"units": "s", "mean": 1}}}}}},
]  # fmt: skip
TABLE = """\
| **Model** | `m` |

| Concurrency | OK | TTFT p50 | TTFT p90 | Lat p90 | Total Tok/s |
|---|---|---|---|---|---|
| 1 | 20/20 | 408ms | 446ms | 4798ms | 36.5 |
"""
TEXTS = [
    VLLM_BLOCK,
    TABLE,
    "Metric,avg,min\nRequest Latency (ms),5.125,4.25\n\nMetric,Value\nRequest Count,8.00\n",
    "concurrency,total_requests,success_count,error_count,requests_per_sec,ttft_p50_ms\n1,20,20,0,0.045,819.15\n",
    f"{VLLM_BLOCK}\n{json.dumps(VLLM_JSON | {'mean_ttft_ms': 52.5})}\n{SGLANG_LINE}\n",
]
JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.none(), max_size=2),
    st.just(10**400), st.just({"a": 1}), st.sampled_from(["xxx", "inf", "-1", "1,000", "5ms", "NaN", "12.5"]),
)  # fmt: skip


def all_of_it(text: str) -> tuple[ImportedRun, ...]:
    """Everything that is done with a file; the only error is a refusal."""
    try:
        runs = read_text(text, "f").runs
    except FormatError:
        return ()
    summary = summary_of(runs)
    assert summary_json(summary)
    assert len(series_of(runs)) == len(summary.stages)
    assert not any(ord(c) < 32 and c != "\n" for c in imported_text(runs, width=80))
    return runs


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(leaf for key, item in items for leaf in leaves(item, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    if not path:
        return junk
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], junk)
    return copy


@settings(deadline=None)
@given(st.data())
def test_any_value_may_be_anything(data: st.DataObject) -> None:
    value = data.draw(st.sampled_from(JSONS))
    for _ in range(data.draw(st.integers(1, 3))):
        value = changed(value, data.draw(st.sampled_from(leaves(value))), data.draw(JUNK))
    all_of_it(json.dumps(value))


@settings(deadline=None)
@given(st.data())
def test_any_character_may_be_anything(data: st.DataObject) -> None:
    text = list(data.draw(st.sampled_from([*TEXTS, *map(json.dumps, JSONS)])))
    for _ in range(data.draw(st.integers(1, 8))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(
            st.one_of(st.characters(), st.sampled_from("\n|={}[],:"))
        )
    all_of_it("".join(text))


@settings(deadline=None)
@given(st.text())
def test_no_text_is_a_traceback(text: str) -> None:
    all_of_it(text)


@pytest.mark.parametrize("text", [*TEXTS, json.dumps(VLLM_JSON, indent=2), json.dumps([VLLM_JSON, DETAILED], indent=2)])
def test_a_text_cut_anywhere_gives_no_number_that_the_whole_does_not_have(text: str) -> None:
    whole = [numbers_of(run) for run in all_of_it(text)]
    for end in range(len(text)):
        for run in all_of_it(text[:end]):
            assert any(numbers_of(run) <= known for known in whole), end


def numbers_of(run: ImportedRun) -> set[tuple[str, float]]:
    """What the file says; what is computed here may be missing in a part and come out otherwise."""
    told = {(name, value) for name, value in run.numbers.items() if "computed here" not in run.notes.get(name, "")}
    for name, stats in run.stats.items():
        told |= {(f"{name} {which}", value) for which, value in stats.percentiles.items()}
        told |= {(f"{name} mean", stats.mean)} if stats.mean is not None else set()
    return told
