"""The names of each engine, old and new, and how several series become one value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import shared
from withstand.record import Seen
from withstand.wire.engine_metrics import ENGINES, read_engine, read_load


def test_vllm_as_it_is_now() -> None:
    engine, values = read_engine(shared("h100/vllm0.26_metrics_after_rate20.txt").read_text("utf-8"))
    assert engine == "vLLM"
    assert values[Seen.PREFIX_QUERIES] == 11_927_239
    assert values[Seen.PREFIX_HITS] == 43_504
    assert values[Seen.PREEMPTIONS] == 153
    assert values[Seen.ANSWERED] == values[Seen.QUEUED] == values[Seen.PREFILLED] == 11_859
    assert values[Seen.PREFILL_S] == pytest.approx(3273.333)
    assert Seen.PREFIX_SHARE not in values


def test_vllm_on_ray_without_the_sums_that_ray_makes_up() -> None:
    text = 'ray_vllm_num_requests_running{model_name="m"} 2\nray_vllm_request_queue_time_seconds_sum 0.45\n'
    text += "ray_vllm_time_to_first_token_seconds_count 3\nray_vllm_prefix_cache_hits_total 64\n"
    said = {Seen.RUNNING: 2, Seen.ANSWERED: 3, Seen.PREFIX_HITS: 64}
    assert read_engine(text) == ("vLLM on Ray", said)


def test_sglang_as_it_is_now() -> None:
    engine, values = read_engine(shared("h100/sglang0.5.14_metrics_after_rate30.txt").read_text("utf-8"))
    assert engine == "SGLang"
    assert (values[Seen.RUNNING], values[Seen.WAITING], values[Seen.KV_SHARE]) == (74, 0, 0.04)
    assert values[Seen.PREEMPTIONS] == 30
    assert values[Seen.PREFIX_HITS] / values[Seen.PREFIX_QUERIES] == pytest.approx(0.00378, rel=0.01)
    assert values[Seen.PREFILL_S] == pytest.approx(1265.102 + 113.190, abs=0.01)
    assert values[Seen.PREFILLED] == 6348
    assert values[Seen.QUEUE_S] + values[Seen.PREFILL_S] < values[Seen.TTFT_S]


def test_vllm_as_it_was() -> None:
    text = """
vllm:num_requests_running{model_name="m"} 3.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.25
vllm:gpu_prefix_cache_queries_total{model_name="m"} 100
vllm:gpu_prefix_cache_hits_total{model_name="m"} 25
"""
    assert read_engine(text)[1] == {
        Seen.RUNNING: 3, Seen.KV_SHARE: 0.25, Seen.PREFIX_QUERIES: 100, Seen.PREFIX_HITS: 25,
    }  # fmt: skip


def test_a_name_that_is_deprecated_is_not_counted_beside_its_heir() -> None:
    text = "vllm:gpu_cache_usage_perc 0.9\nvllm:kv_cache_usage_perc 0.4\n"
    assert read_engine(text)[1] == {Seen.KV_SHARE: 0.4}


def test_minus_one_is_vllms_word_for_unknown() -> None:
    assert read_engine("vllm:gpu_prefix_cache_hit_rate -1.0\n") == (None, {})


def test_tgi_and_llama_cpp() -> None:
    assert read_engine("tgi_queue_size 2\ntgi_batch_current_size 8\n") == ("TGI", {Seen.WAITING: 2, Seen.RUNNING: 8})
    llama = "llamacpp:requests_processing 4\nllamacpp:requests_deferred 1\nllamacpp:kv_cache_usage_ratio 0.5\n"
    assert read_engine(llama) == ("llama.cpp", {Seen.RUNNING: 4, Seen.WAITING: 1, Seen.KV_SHARE: 0.5})


def test_our_gateway_is_told_apart_from_engines() -> None:
    page = """
withstand_gateway_requests_in_flight 7
withstand_gateway_queued{model="a"} 2
withstand_gateway_queued{model="b"} 1
withstand_gateway_hop_seconds_bucket{le="0.001"} 9
withstand_gateway_hop_seconds_sum 0.004
withstand_gateway_hop_seconds_count 10
"""
    assert read_engine(page) == (
        "withstand gateway",
        {Seen.PASSING: 7, Seen.HELD: 3, Seen.HOP_S: 0.004, Seen.HOPPED: 10},
    )
    assert read_load(page.encode()) is None


@given(st.lists(st.integers(0, 500), min_size=1, max_size=8))
def test_engines_behind_one_address_have_the_sum_of_their_requests(running: list[int]) -> None:
    text = "\n".join(f'vllm:num_requests_running{{engine="{i}"}} {n}' for i, n in enumerate(running))
    assert read_engine(text)[1] == {Seen.RUNNING: sum(running)}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_and_the_mean_of_their_shares(shares: list[float]) -> None:
    text = "\n".join(f'vllm:kv_cache_usage_perc{{engine="{i}"}} {share}' for i, share in enumerate(shares))
    assert read_engine(text)[1][Seen.KV_SHARE] == pytest.approx(sum(shares) / len(shares))


def test_priorities_are_in_their_sum_already() -> None:
    text = 'sglang:num_running_reqs{priority=""} 5\nsglang:num_running_reqs{priority="1"} 5\n'
    assert read_engine(text)[1] == {Seen.RUNNING: 5}


def test_ranks_of_one_engine_tell_the_same_and_replicas_do_not() -> None:
    ranks = 'sglang:num_running_reqs{tp_rank="0"} 5\nsglang:num_running_reqs{tp_rank="1"} 5\n'
    assert read_engine(ranks)[1] == {Seen.RUNNING: 5}
    replicas = 'sglang:num_running_reqs{tp_rank="0",dp_rank="0"} 5\nsglang:num_running_reqs{tp_rank="1",dp_rank="1"} 4'
    assert read_engine(replicas)[1] == {Seen.RUNNING: 9}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-3", "1e999", "x"])
def test_what_is_no_count_is_unknown(value: str) -> None:
    assert read_engine(f"vllm:num_requests_running {value}\n") == (None, {})


@given(st.text() | st.sampled_from(["<!doctype html><html></html>", '{"error": "not found"}', "http_requests_total 3"]))
def test_whoever_is_no_engine_says_nothing(text: str) -> None:
    assert read_engine(text) == (None, {})


def test_no_two_engines_share_a_name() -> None:
    names = [{term.name for sums in table.values() for terms in sums for term in terms} for table in ENGINES.values()]
    assert sum(map(len, names)) == len(set().union(*names))


# The load alone.


def test_tensorrt_llm_by_itself_and_behind_triton() -> None:
    serve = "trtllm_num_requests_running 3\ntrtllm_num_requests_waiting 2\ntrtllm_kv_cache_utilization 0.5\n"
    assert read_engine(serve) == ("TensorRT-LLM", {Seen.RUNNING: 3, Seen.WAITING: 2, Seen.KV_SHARE: 0.5})
    triton = "\n".join(
        f'nv_trt_llm_request_metrics{{model="m",request_type="{kind}",version="1"}} {count}'
        for kind, count in (("context", 1), ("scheduled", 4), ("max", 512), ("waiting", 6))
    )
    assert read_engine(triton)[1] == {Seen.RUNNING: 4, Seen.WAITING: 6}
    assert read_load(triton.encode()) == 10


@pytest.mark.parametrize(
    "text",
    [
        "tgi_queue_size 2\ntgi_batch_current_size 8",
        "llamacpp:requests_processing 9\r\nllamacpp:requests_deferred 1\r\n",
        'x 1\nvllm:num_requests_running{a="1"} 3\nvllm:num_requests_running{a="2"} 3\nvllm:num_requests_waiting 4\nx 1',
        'sglang:num_running_reqs{priority=""} 10\nsglang:num_running_reqs{priority="1"} 7\nsglang:token_usage 0.1\n',
        'vllm:num_requests_waiting_by_reason{reason="capacity"} 7\nvllm:num_requests_running 10',
    ],
)
def test_the_load_is_what_runs_and_what_waits(text: str) -> None:
    assert read_load(text.encode()) == 10


def test_a_page_that_says_nothing_of_load_says_nothing() -> None:
    assert read_load(b"# HELP vllm:num_requests_running x\nvllm:kv_cache_usage_perc 0.5\n\xff\xfe") is None
    assert read_load(b"") is None


@given(st.sampled_from(sorted(ENGINES)), st.data())
def test_the_load_is_that_of_the_whole_page(engine: str, data: st.DataObject) -> None:
    names = sorted({t.name for sums in ENGINES[engine].values() for terms in sums for t in terms if not t.labels})
    drawn = data.draw(st.lists(st.sampled_from([*names, "other", f"# {names[0]}"]), max_size=12))
    text = "\n".join(f"{name} {n}" for n, name in enumerate(drawn))
    values = read_engine(text)[1]
    said = [values[seen] for seen in (Seen.RUNNING, Seen.WAITING) if seen in values]
    assert read_load(text.encode()) == (sum(said) if said else None)
