"""vLLM's, SGLang's and InferenceX's flat objects, and the facts of their detailed forms."""

import json

import pytest

from foreign import DETAILED, SGLANG_LINE, VLLM_JSON, one, several
from withstand.errors import FormatError
from withstand.interop.read import read_text
from withstand.record import Status


def test_vllm_s_keys_come_over_and_its_backend_is_not_taken_for_the_engine() -> None:
    run = one(VLLM_JSON)
    assert (run.source.tool, run.conditions.engine, run.conditions.backend) == ("vLLM", "sgl", "vllm")
    assert run.stats["ttft"].std == 4.0
    assert run.stats["ttft"].n == 90
    assert run.numbers["completed"] == 90
    assert "request_goodput" not in run.numbers, "null is unknown"


def test_json_lines_lists_and_wrapped_objects_are_all_read() -> None:
    line = json.dumps(VLLM_JSON)
    assert len(several(f"{line}\n{line}\n")) == 2
    assert len(several(f"{line}{line}")) == 2
    assert len(several([VLLM_JSON, VLLM_JSON])) == 2
    assert len(several({"results": {"a": VLLM_JSON, "b": VLLM_JSON}})) == 2
    assert several([VLLM_JSON, VLLM_JSON])[1].source.position == "[1]"


def test_sglang_s_bare_infinity_and_nan_are_no_error_and_no_number() -> None:
    run = one(SGLANG_LINE)
    assert (run.source.tool, run.conditions.arrivals, run.conditions.request_rate) == ("SGLang", "inf", None)
    assert "itl" not in run.stats
    assert run.stats["ttft"].percentiles == {"p50": 40.0}
    assert run.numbers["request_throughput"] == 2.0
    assert run.notes["request_throughput"].startswith("computed here")


def test_sglang_s_random_lengths_say_nothing_of_another_dataset() -> None:
    assert one(SGLANG_LINE).conditions.output_tokens is None
    assert one(SGLANG_LINE.replace("sharegpt", "random")).conditions.output_tokens == 512


def test_inferencex_means_seconds_where_it_says_nothing() -> None:
    run = one({key.removesuffix("_ms"): value for key, value in VLLM_JSON.items()} | {"mean_ttft": 0.0525})
    assert run.source.tool == "InferenceX"
    assert run.stats["ttft"].mean == pytest.approx(52.5)


def test_detailed_lists_become_records() -> None:
    run = one(DETAILED)
    assert run.facts is not None
    assert run.facts.starts_known
    first, second, failed = run.facts.records
    assert first.chunk_ns == [50_000_000, 60_000_000, 80_000_000]
    assert second.sent_ns == 500_000_000
    assert (failed.status, failed.chunk_ns, failed.output_tokens) == (Status.REFUSED, [], None)
    assert failed.error == "ClientConnectorError: Too many open files"
    assert run.stats["e2el"].mean == pytest.approx(80)
    assert run.numbers["failed"] == 1


def test_without_instants_of_sending_no_rate_is_made_of_the_facts() -> None:
    run = one(
        {key: value for key, value in DETAILED.items() if key not in {"start_times", "duration"}} | {"duration": None}
    )
    assert run.facts is not None
    assert not run.facts.starts_known
    assert "concurrency_mean" not in run.numbers
    assert "duration_s" not in run.numbers


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"itls": [[0.01]]}, "differ in length"),
        ({"ttfts": [0.05, "x", 0.0]}, "no number"),
        ({"ttfts": [0.05, 1e12, 0.0]}, "no request can have"),
        ({"completed": 3}, "are counted"),
    ],
)
def test_facts_that_cannot_be_are_left_out_with_the_reason(change: dict[str, object], reason: str) -> None:
    run = one(DETAILED | change)
    assert run.facts is None
    assert any(left.what == "per-request facts" and reason in left.reason for left in run.left_out)


def test_a_user_s_own_labels_are_kept_as_words() -> None:
    run = one(VLLM_JSON | {"gpu": "4xL40S", "offloading": "none", "input_len": "1000"})
    assert run.conditions.labels["gpu"] == "4xL40S"
    assert run.conditions.labels["offloading"] == "none"
    assert run.conditions.input_tokens == 1000


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("completed", 12.5, "a count cannot be"),
        ("mean_ttft_ms", -5, "negative"),
        ("mean_ttft_ms", True, "cannot be read"),
        ("mean_ttft_ms", "abc", "cannot be read"),
        ("mean_ttft_ms", float("inf"), "infinite"),
        ("mean_ttft_ms", 10**400, "cannot be read"),
    ],
)
def test_what_cannot_be_is_left_out_and_said(key: str, value: object, reason: str) -> None:
    run = one(VLLM_JSON | {key: value})
    assert any(left.what == key and reason in left.reason for left in run.left_out)
    assert run.numbers.get("completed") in {90, None}


def test_offline_benchmarks_are_refused_by_name() -> None:
    with pytest.raises(FormatError, match="vLLM's offline throughput benchmark"):
        read_text(json.dumps({"elapsed_time": 3.0, "num_requests": 5, "requests_per_second": 1.6}), "t.json")


def test_a_sweep_s_csv_has_one_run_a_row() -> None:
    keys = [key for key in VLLM_JSON if key != "request_goodput:"]
    row = ",".join(str(VLLM_JSON[key]) for key in keys)
    runs = several(f"{','.join(keys)}\n{row}\n{row.replace('52.501', '60.0')}\n")
    assert [run.stats["ttft"].mean for run in runs] == [52.501, 60.0]


def test_our_own_summary_is_read_too() -> None:
    run = one({"schema": 1, "stages": [VLLM_JSON | {"self_check": {}}]})
    assert run.source.tool == "withstand"


def test_a_ramp_is_no_burst_though_the_rate_is_inf() -> None:
    ramp = {"request_rate": "inf", "ramp_up_strategy": "linear", "ramp_up_start_rps": 5, "ramp_up_end_rps": 20}
    run = one(VLLM_JSON | ramp)
    assert (run.conditions.arrivals, run.conditions.request_rate) == ("linear ramp, 5 to 20 req/s", None)


def test_tokens_that_nobody_counted_are_unknown() -> None:
    run = one(VLLM_JSON | {"total_input_tokens": 0, "input_throughput": 0.0})
    assert not {"total_input_tokens", "input_throughput", "total_token_throughput"} & run.numbers.keys()
    assert run.numbers["output_throughput"] == 150.0
    assert any("no prompt token was counted" in left.reason for left in run.left_out)


def test_a_key_that_stands_twice_says_nothing_unless_it_says_the_same() -> None:
    text = json.dumps(VLLM_JSON)[:-1]
    run = one(f'{text}, "mean_ttft_ms": 1.5, "mean_itl_ms": 10.0, "model_id": "other"}}')
    assert (run.stats["ttft"].mean, run.stats["itl"].mean, run.conditions.model) == (None, 10.0, None)
    assert any("twice in the file, as 52.501 and as 1.5" in left.reason for left in run.left_out)
