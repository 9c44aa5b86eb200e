"""A stack's file becomes a plan of processes: pure, so what comes out can be read."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from withstand.errors import SpecError, UsageError
from withstand.spec.stack import stack_of
from withstand.stack.blueprint import Blueprint, Place, Process
from withstand.stack.composed import composed

PORTS = {name: 9000 + i for i, name in enumerate(("small", "big", "any", "gateway"))}
PLACE = Place(
    folder=Path("/stacks/s"),
    python="/ours/python",
    ports=PORTS,
    threads=4,
    small_model=Path("/cache/small.gguf"),
    small_model_name="smol",
)


def of(tree: dict[str, Any]) -> Blueprint:
    return composed(stack_of(tree, "My Stack"), PLACE)


def one(**engine: object) -> Process:
    return of({"engines": {"small": engine}}).processes[0]


def test_the_embedded_engine_behind_the_gateway() -> None:
    blueprint = of({"engines": {"small": {"kind": "llamacpp", "max_sequences": 4}}, "gateway": {"restart": True}})
    engine, gateway = blueprint.processes
    assert blueprint.name == "my-stack"
    assert (blueprint.door, blueprint.model) == ("http://127.0.0.1:9003", "smol")
    assert engine.argv == (
        *("/ours/python", "-P", "-m", "withstand.stack.llamacpp_server", "--model", "/cache/small.gguf"),
        *("--alias", "smol", "--host", "127.0.0.1", "--port", "9000", "--parallel", "4", "--context", "8192"),
        *("--threads", "4"),
    )
    assert gateway.needs == ("small",)
    assert gateway.upkeep.restart
    assert gateway.argv[-1] == "/stacks/s/gateway.json"
    assert msgspec.json.decode(gateway.files["gateway.json"]) == {
        "listen": "127.0.0.1:9003",
        "models": {"smol": {"engines": [{"url": "http://127.0.0.1:9000"}]}},
    }


def test_vllm_with_all_that_it_can() -> None:
    engine = one(
        kind="vllm",
        python="/venv/bin/python",
        model="/models/Llama-8B",
        context=4096,
        max_sequences=16,
        dtype="bfloat16",
        quantization="awq",
        tensor_parallel=2,
        prefix_caching=False,
        chunked_prefill=True,
        speculative={"tokens": 3},
        kv_cache_gb=2,
        kv_offload_gb=8,
        role="prefill",
        dummy_weights=True,
        args=["--enforce-eager"],
        env={"HF_HUB_OFFLINE": "1", "HF_TOKEN": {"from_env": "TOKEN"}},
    )
    assert " ".join(engine.argv) == (
        "/venv/bin/python -m vllm.entrypoints.cli.main serve /models/Llama-8B --host 127.0.0.1 "
        "--port 9000 --served-model-name Llama-8B --max-model-len 4096 --max-num-seqs 16 --dtype bfloat16 "
        "--quantization awq --tensor-parallel-size 2 --no-enable-prefix-caching --enable-chunked-prefill "
        '--speculative-config {"method": "ngram", "prompt_lookup_max": 4, "num_speculative_tokens": 3} '
        "--kv-offloading-size 8.0 "
        '--kv-transfer-config {"kv_connector": "NixlConnector", "kv_role": "kv_both"} '
        "--load-format dummy --enforce-eager"
    )
    assert engine.env["VLLM_CPU_KVCACHE_SPACE"] == "2"
    assert b'"HF_TOKEN":{"from_env":"TOKEN"' in msgspec.json.encode(engine)


def test_engines_of_one_model_share_it_and_a_remote_one_is_not_started() -> None:
    blueprint = of(
        {
            "engines": {
                "small": {"kind": "llamacpp", "served_as": "m"},
                "big": {"kind": "remote", "url": "https://there/v1", "served_as": "m", "api_key": {"from_env": "K"}},
            },
            "gateway": {"config": {"models": {"m": {"policy": "round_robin"}}, "drain_s": 5}},
        }
    )
    assert [process.name for process in blueprint.processes] == ["small", "gateway"]
    assert msgspec.json.decode(blueprint.processes[1].files["gateway.json"]) == {
        "listen": "127.0.0.1:9003",
        "models": {
            "m": {
                "engines": [{"url": "http://127.0.0.1:9000"}, {"url": "https://there", "api_key_env": "K"}],
                "policy": "round_robin",
            }
        },
        "drain_s": 5,
    }


def test_any_command_is_told_its_port() -> None:
    engine = one(kind="command", args=["serve", "--port={port}"], served_as="m", health="/v1/models")
    assert engine.argv == ("serve", "--port=9000")
    assert engine.env["PORT"] == "9000"
    assert engine.health_url == "http://127.0.0.1:9000/v1/models"


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ({"kind": "vllm"}, "$.engines.small.python"),
        ({"kind": "llamacpp", "lmcache": True}, "$.engines.small.lmcache"),
        ({"kind": "llamacpp", "prefix_caching": False}, "$.engines.small.prefix_caching"),
        ({"kind": "command", "served_as": "m"}, "$.engines.small.args"),
        ({"kind": "remote", "served_as": "m"}, "$.engines.small.url"),
        ({"kind": "llamacpp", "env": {"A": {}}}, "$.engines.small.env.A"),
        ({"kind": "llamacpp", "contexts": 1}, "contexts"),
        ({"kind": "nothing"}, "engines.small.kind"),
        ({}, "kind"),
    ],
)
def test_what_cannot_be_is_named(engine: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("$", r"\$").replace(".", r"\.")):
        one(**engine)


@pytest.mark.parametrize("tree", [{}, {"engines": {}}, {"engines": {"A b": {"kind": "llamacpp"}}}])
def test_a_stack_has_engines_of_good_names(tree: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="The stack is wrong"):
        stack_of(tree, "x")
