"""The same facts give the same numbers as vLLM's formulas; these are written out here with numpy."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.metrics.context import StageContext
from withstand.metrics.summarize import summarize_stage
from withstand.metrics.summary import Distribution, StageSummary
from withstand.record import Record, Status, TokensFrom

Numbers = dict[str, "list[float]"]
VllmFile = Callable[[str], tuple[dict[str, Any], list[Record]]]


def vllm_numbers(records: list[Record]) -> Numbers:
    """ttft, itl, tpot and e2el in ms, as vllm/benchmarks computes them from its own clock readings."""
    numbers: Numbers = {"ttft": [], "itl": [], "tpot": [], "e2el": []}
    for record in (r for r in records if r.status is Status.OK):
        start = record.sent_ns
        assert start is not None
        ttft, latency = record.chunk_ns[0] - start, record.chunk_ns[-1] - start
        numbers["ttft"].append(ttft / 1e6)
        numbers["itl"] += [gap / 1e6 for gap in np.diff(record.chunk_ns)]
        numbers["e2el"].append(latency / 1e6)
        if record.output_tokens and record.output_tokens > 1:
            numbers["tpot"].append((latency - ttft) / (record.output_tokens - 1) / 1e6)
    return numbers


def assert_same(shown: Distribution, values: list[float]) -> None:
    assert shown.n == len(values)
    assert shown.mean == pytest.approx(np.mean(values), rel=1e-9)
    assert shown.std == pytest.approx(np.std(values), rel=1e-9, abs=1e-9)
    for percent in (50, 75, 90, 95, 99):
        assert shown.percentiles[f"p{percent}"] == pytest.approx(np.percentile(values, percent), rel=1e-9)


def assert_same_as_vllm(summary: StageSummary, records: list[Record]) -> None:
    for name, values in vllm_numbers(records).items():
        assert_same(getattr(summary, name), values)


@st.composite
def answers(draw: st.DrawFn) -> Record:
    sent_ns = draw(st.integers(0, 10**12))
    gaps_ns = draw(st.lists(st.integers(1, 10**10), min_size=2, max_size=30))
    chunk_ns = [int(ns) for ns in np.cumsum([sent_ns, *gaps_ns])][1:]
    return Record(
        id=0,
        stage=0,
        status=Status.OK,
        sent_ns=sent_ns,
        chunk_ns=chunk_ns,
        end_ns=chunk_ns[-1],
        output_tokens=draw(st.integers(2, 200)),
        tokens_from=TokensFrom.SERVER,
    )


def context_of(n: int) -> StageContext:
    return msgspec.convert({"stage": {"num_prompts": n}}, StageContext)


@given(st.lists(answers(), min_size=1, max_size=20))
def test_any_facts(records: list[Record]) -> None:
    assert_same_as_vllm(summarize_stage(records, context_of(len(records))), records)


FILES = (
    "samples/vllm-0.33.0_result_detailed.json",
    "h100/vllm0.26_rate1.json",
    "h100/vllm0.26_rate10.json.gz",
    "h100/vllm0.26_rate20.json.gz",
    "h100/vllm0.26_rate30.json.gz",
    "h100/sglang0.5.14_rate30.json.gz",
    "h100/vllm0.26_inf_ulimit1024.json.gz",
)


@pytest.mark.parametrize("name", FILES)
def test_real_files(name: str, vllm_file: VllmFile) -> None:
    result, records = vllm_file(name)
    summary = summarize_stage(records, context_of(len(records)))
    assert_same_as_vllm(summary, records)
    assert (summary.completed, summary.total_output_tokens) == (result["completed"], result["total_output_tokens"])
    for metric in ("ttft", "tpot", "itl"):
        shown: Distribution = getattr(summary, metric)
        for key, value in {"mean": shown.mean, **shown.percentiles}.items():
            # the file's arrays are rounded to 0.1 µs, which is 1e-4 ms
            printed = result.get(f"{key}_{metric}_ms", value)
            assert value == pytest.approx(printed, abs=2e-4)
