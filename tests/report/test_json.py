import json
from typing import Any

import msgspec

from withstand.metrics.summary import Distribution, LeftOut, Summary
from withstand.report.json import summary_json

LATENCIES = ("ttft", "tpot", "itl", "e2el")
STATISTICS = ("mean", "median", "std", "p50", "p75", "p90", "p95", "p99")
VLLM = {
    "backend",
    "model_id",
    "num_prompts",
    "request_rate",
    "burstiness",
    "max_concurrency",
    "duration",
    "completed",
    "failed",
    "total_input_tokens",
    "total_output_tokens",
    "request_throughput",
    "output_throughput",
    "total_token_throughput",
}
OURS = {
    "name",
    "scheduled_rate",
    "achieved_rate",
    "success_rate",
    "statuses",
    "tokens_from",
    "intervals",
    "self_check",
    "doubts",
    "p99_response_ms",
}


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def read(summary: Summary) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(summary_json(summary), parse_constant=refuse)
    return document


def test_every_stage_has_the_names_of_the_contract(sample: Any) -> None:
    document = read(sample.summary)
    assert document["schema"] == 1
    wanted = VLLM | OURS | {f"{s}_{name}_ms" for s in STATISTICS for name in LATENCIES}
    for stage in document["stages"]:
        assert wanted <= stage.keys()


def test_numbers_are_not_rounded(sample: Any) -> None:
    stage, read_back = sample.summary.stages[-1], read(sample.summary)["stages"][-1]
    assert read_back["p99_ttft_ms"] == stage.ttft.percentiles["p99"]
    assert read_back["median_itl_ms"] == stage.itl.percentiles["p50"]
    assert read_back["duration"] == stage.duration_s
    assert read_back["intervals"]["ttft"]["p50"] == [stage.ttft.intervals["p50"].low, stage.ttft.intervals["p50"].high]


def test_a_rate_is_a_number_or_inf_or_unknown(sample: Any) -> None:
    assert [read(sample.summary)["stages"][i]["request_rate"] for i in (0, -1)] == ["inf", 11]
    stage = sample.summary.stages[0]
    ramp = msgspec.structs.replace(stage, load=msgspec.structs.replace(stage.load, arrivals="ramp"))
    assert read(Summary(stages=(ramp,)))["stages"][0]["request_rate"] is None


def test_unknown_and_not_finite_are_null(sample: Any) -> None:
    odd = Distribution(n=1, mean=float("nan"), max=float("inf"), percentiles={"p50": None, "p99": float("-inf")})
    stage = msgspec.structs.replace(sample.summary.stages[0], ttft=odd, tpot=Distribution(n=0), duration_s=float("inf"))
    (read_back,) = read(Summary(stages=(stage,)))["stages"]
    for key in ("mean_ttft_ms", "max_ttft_ms", "p50_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "p99_tpot_ms", "duration"):
        assert read_back[key] is None
    assert read_back["backend"] is None


def test_a_cut_run_and_its_doubts_are_told(fallen: Any) -> None:
    document = read(fallen.summary)
    assert document["complete"] is False
    (doubt,) = document["stages"][0]["doubts"]
    assert (doubt["kind"], doubt["blocking"]) == ("client_bound", True)


def test_stages_that_were_left_out_are_told_with_their_reason(sample: Any) -> None:
    assert read(sample.summary)["left_out"] == []
    left = msgspec.structs.replace(sample.summary, left_out=(LeftOut("rate-64", "no time was left"),))
    assert read(left)["left_out"] == [{"stage": "rate-64", "why": "no time was left", "no_arrival": False}]
