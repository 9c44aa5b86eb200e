import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from withstand.metrics.summary import Distribution, Load, StageSummary
from withstand.report.classic import classic

SAMPLES = Path(os.environ.get("WITHSTAND_SHARED") or Path(__file__).parents[2].parent / "shared") / "data" / "samples"
QUEUE_SECTION = "---------------Client-side Queueing---------------"
EMPTY = Distribution(n=0)


def read_golden(name: str) -> str:
    if not (SAMPLES / name).exists():
        pytest.skip(f"{name} is not beside the repository (WITHSTAND_SHARED names its folder)")
    return (SAMPLES / name).read_text("utf-8")


def block_of(printed: str) -> list[str]:
    lines = printed.splitlines()
    start = next(i for i, line in enumerate(lines) if "Serving Benchmark Result" in line)
    return lines[start : lines.index("=" * 50, start) + 1]


def distribution(result: dict[str, Any], name: str, **extremes: float) -> Distribution:
    percentiles = {f"p{p}": result.get(f"p{p}_{name}_ms") for p in (50, 75, 90, 95, 99)}
    percentiles["p50"] = result[f"median_{name}_ms"]
    return Distribution(n=result["completed"], mean=result[f"mean_{name}_ms"], percentiles=percentiles, **extremes)


def stage_of(result: dict[str, Any], **latencies: Distribution) -> StageSummary:
    missing = {"response": EMPTY, "ttft_scheduled": EMPTY, "lateness": EMPTY}
    return StageSummary(
        name="main",
        load=Load(request_rate=20.0, arrivals="poisson", max_concurrency=4),
        attempted=10,
        completed=10,
        failed=0,
        duration_s=result["duration"],
        request_throughput=result["request_throughput"],
        request_goodput=result["request_goodput"],
        output_throughput=result["output_throughput"],
        total_input_tokens=result["total_input_tokens"],
        total_output_tokens=result["total_output_tokens"],
        output_throughput_peak=result["max_output_tokens_per_s"],
        concurrency_peak=result["max_concurrent_requests"],
        ttft=distribution(result, "ttft"),
        tpot=distribution(result, "tpot"),
        **(missing | latencies),
    )


def test_vllm_block_is_vllms_line_by_line() -> None:
    golden = block_of(read_golden("vllm-0.33.0_stdout.txt"))
    queueing = golden.index(QUEUE_SECTION)
    result = json.loads(read_golden("vllm-0.33.0_result_detailed.json"))
    stage = msgspec.structs.replace(
        stage_of(
            result,
            itl=distribution(result, "itl"),
            e2el=distribution(result, "e2el"),
            response=distribution(result, "e2el_including_client_queue"),
        ),
        total_token_throughput=result["total_token_throughput"],
    )
    assert classic(stage).splitlines() == golden[:queueing] + golden[queueing + 6 :]


def test_sglang_block_is_sglangs_line_by_line() -> None:
    golden = block_of(read_golden("sglang-0.5.23_stdout.txt"))
    result = json.loads(read_golden("sglang-0.5.23_result.jsonl"))
    stage = msgspec.structs.replace(
        stage_of(result, itl=distribution(result, "itl", max=10.75), e2el=distribution(result, "e2e_latency")),
        total_token_throughput=result["total_throughput"],
        concurrency_mean=result["concurrency"],
    )
    ours = classic(stage, "sglang", backend="vllm-chat").splitlines()
    unknown_here = ("SLOs (ms):", "TTFT SLO", "TPOT SLO", "Total generated tokens (retokenized):")
    assert [line for line in ours if not line.startswith(unknown_here)] == [
        line for line in golden if not line.startswith(unknown_here)
    ]
    assert "Total generated tokens (retokenized):    n/a       " in ours


def test_unknown_is_said_not_zero() -> None:
    load = Load(arrivals="ramp")
    nothing = dict.fromkeys(("ttft", "tpot", "itl", "e2el", "response", "ttft_scheduled", "lateness"), EMPTY)
    stage = StageSummary(name="x", load=load, attempted=3, completed=0, failed=3, **nothing)
    assert "Mean TTFT (ms):                          n/a       " in classic(stage).splitlines()
    assert "nan" not in classic(stage)
    assert "Request rate configured" not in classic(stage)
    assert "Traffic request rate:                    ramp      " in classic(stage, "sglang").splitlines()
    assert "Max request concurrency:                 not set   " in classic(stage, "sglang").splitlines()


def test_blocks_as_people_read_them(sample: Any, matches: Callable[[str, str], None]) -> None:
    stage = sample.summary.stages[-1]
    matches("classic_vllm.txt", classic(stage) + "\n")
    matches("classic_sglang.txt", classic(stage, "sglang", backend="openai-chat") + "\n")
