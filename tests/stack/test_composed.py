"""A stack's file becomes a plan of processes: pure, so what comes out can be read."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from withstand.errors import SpecError, UsageError
from withstand.gateway.config import config_of as gateway_config_of
from withstand.spec.stack import Secret, stack_of
from withstand.stack.blueprint import Blueprint, Place, Process
from withstand.stack.composed import composed, service_names

PORTS = {name: 9000 + i for i, name in enumerate(("small", "big", "any", "gateway", "agent", "ray", "ray-ready"))}
TLS = {"certificate": "/c.pem", "key": "/k.pem"}
PLACE = Place(
    folder=Path("/stacks/s"),
    python="/ours/python",
    ports=PORTS,
    threads=4,
    side_ports={"small": 9100},
    small_model=Path("/cache/small.gguf"),
    small_model_name="smol",
)

LOOKS = {"path": "/health", "every_s": 0.5, "timeout_s": 5, "unhealthy": 3, "healthy": 1}
"""At an engine of the stack's own."""


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
        "models": {"smol": {"engines": [{"url": "http://127.0.0.1:9000"}], "health": LOOKS}},
    }


def test_vllm_with_all_that_it_can() -> None:
    told = {
        "kind": "vllm",
        "python": "/venv/bin/python",
        "model": "/models/Llama-8B",
        "context": 4096,
        "max_sequences": 16,
        "dtype": "bfloat16",
        "quantization": "awq",
        "tensor_parallel": 2,
        "prefix_caching": False,
        "chunked_prefill": True,
        "speculative": {"tokens": 3},
        "kv_cache_gb": 2,
        "kv_offload_gb": 8,
        "role": "prefill",
        "dummy_weights": True,
        "args": ["--enforce-eager"],
        "env": {"HF_HUB_OFFLINE": "1", "HF_TOKEN": {"from_env": "TOKEN"}},
    }
    engine = of({"engines": {"small": told}, "gateway": {}}).processes[0]
    assert " ".join(engine.argv) == (
        "/venv/bin/python -m vllm.entrypoints.cli.main serve /models/Llama-8B --host 127.0.0.1 "
        "--port 9000 --served-model-name Llama-8B --max-model-len 4096 --max-num-seqs 16 --dtype bfloat16 "
        "--quantization awq --tensor-parallel-size 2 --no-enable-prefix-caching --enable-chunked-prefill "
        '--speculative-config {"method": "ngram", "prompt_lookup_max": 4, "num_speculative_tokens": 3} '
        "--kv-cache-memory-bytes 2000000000 --kv-offloading-size 8.0 "
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
                "engines": [
                    {"url": "http://127.0.0.1:9000"},
                    {"url": "https://there", "api_key_env": "K", "health": False},
                ],
                "health": LOOKS,
                "policy": "round_robin",
            }
        },
        "drain_s": 5,
    }


def test_simulated_prefill_and_decode_come_together_as_vllm_s_do() -> None:
    roles = {"small": "prefill", "big": "decode"}
    both = {name: {"kind": "sim", "served_as": "llama", "role": role} for name, role in roles.items()}
    gateway = of({"engines": both, "gateway": {}}).processes[-1]
    models = json.loads(gateway.files["gateway.json"])["models"]
    assert models["simulated-llama"]["disaggregation"] == {"style": "vllm_nixl"}


def test_a_simulated_engine_is_named_so() -> None:
    blueprint = of({"engines": {"small": {"kind": "sim", "served_as": "llama", "model": "/fit.toml"}}})
    assert blueprint.model == "simulated-llama"
    engine = one(kind="sim", served_as="llama", model="/fit.toml", max_sequences=8, prefix_caching=False)
    assert engine.argv == (
        *("/ours/python", "-P", "-m", "withstand.testing.sim", "--host", "127.0.0.1", "--port", "9000"),
        *("--model", "simulated-llama", "--parameters", "/fit.toml"),
        *("--set", "max_sequences=8", "--set", "prefix_caching=false"),
    )


def test_any_command_is_told_its_port() -> None:
    engine = one(kind="command", args=["serve", "--port={port}"], served_as="m", health="/v1/models")
    assert engine.argv == ("serve", "--port=9000")
    assert engine.env["PORT"] == "9000"
    assert engine.health_url == "http://127.0.0.1:9000/v1/models"


def test_on_ray_all_engines_are_one_process_behind_the_gateway() -> None:
    model = {"kind": "vllm", "python": "/v/python", "model": "/models/m", "ready_s": 900}
    blueprint = of(
        {
            "engines": {"small": model, "big": {**model, "served_as": "n", "env": {"T": {"from_env": "T"}}}},
            "gateway": {},
            "runner": "ray",
            "ray": {"python": "/ray/python"},
        }
    )
    ray, gateway = blueprint.processes
    assert ray.argv[0] == "/ray/python"
    assert ray.argv[2] == "/stacks/s/ray.json"
    assert ray.upkeep.ready_s == 900
    assert b'"T":{"from_env":"T"' in msgspec.json.encode(ray)
    told = msgspec.json.decode(ray.files["ray.json"])
    assert (told["address"], told["port"]) == ("local", 9005)
    models = [m["model_loading_config"]["model_id"] for m in told["application"]["args"]["llm_configs"]]
    assert models == ["m", "n"]
    assert gateway.needs == ("ray",)
    seats = msgspec.json.decode(gateway.files["gateway.json"])["models"]
    assert seats == {name: {"engines": [{"url": "http://127.0.0.1:9005"}]} for name in ("m", "n")}


def on_ray(engines: dict[str, Any], **ray: object) -> Blueprint:
    return of({"engines": engines, "runner": "ray", "ray": {"python": "/ray/python", **ray}})


def test_a_clusters_token_is_handed_over_by_reference() -> None:
    vllm = {"small": {"kind": "vllm", "model": "/models/m"}}
    [ray] = on_ray(vllm, address="127.0.0.1:6379", token={"from_env": "T"}).processes
    assert ray.env["RAY_AUTH_TOKEN"] == Secret(from_env="T")
    assert ray.scratch == ()
    assert ray.undo
    assert ray.undo.argv[-1] == "--undo"
    assert ray.metrics_url == "http://127.0.0.1:9006/metrics"
    assert "RAY_AUTH_TOKEN" not in on_ray(vllm, address="auto").processes[0].env
    with pytest.raises(SpecError, match=r"\$\.ray\.token"):
        on_ray(vllm, token={"from_env": "T"})
    for address in ("localhost", "http://h:6379", "ray://h:10001", ":6379", ""):
        with pytest.raises(SpecError, match=r"HOST:PORT of a cluster.*\$\.ray\.address"):
            on_ray(vllm, address=address)


def test_ray_brings_prefill_and_decode_together_by_itself() -> None:
    model = {"kind": "vllm", "model": "/models/m", "served_as": "m"}
    both = {"small": {**model, "role": "prefill"}, "big": {**model, "role": "decode"}}
    [ray] = on_ray(both).processes
    args = msgspec.json.decode(ray.files["ray.json"])["application"]["args"]
    assert args["prefill_config"]["experimental_configs"]["NIXL_SIDE_CHANNEL_PORT_BASE"] == PLACE.side_ports["small"]
    there = on_ray(both, address="auto").processes[0].files["ray.json"]
    assert "NIXL_SIDE_CHANNEL_PORT_BASE" not in there
    gateway = of({"engines": both, "gateway": {}, "runner": "ray", "ray": {"python": "/ray/python"}}).processes[-1]
    seats = msgspec.json.decode(gateway.files["gateway.json"])["models"]
    assert seats == {"m": {"engines": [{"url": "http://127.0.0.1:9005"}]}}


def test_ray_runs_in_an_environment_that_is_named() -> None:
    with pytest.raises(SpecError, match=r"\$\.ray\.python"):
        of({"engines": {"small": {"kind": "vllm", "python": "/v", "model": "/m"}}, "runner": "ray"})


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ({"kind": "vllm"}, "$.engines.small.python"),
        ({"kind": "llamacpp", "lmcache": True}, "$.engines.small.lmcache"),
        ({"kind": "llamacpp", "tensor_parallel": 2}, "$.engines.small.tensor_parallel"),
        ({"kind": "vllm", "python": "p", "model": "m", "role": "decode"}, "$.engines.small.role"),
        ({"kind": "command", "served_as": "m"}, "$.engines.small.args"),
        ({"kind": "remote", "served_as": "m"}, "$.engines.small.url"),
        ({"kind": "remote", "served_as": "m", "url": "file:///etc/passwd"}, "$.engines.small.url"),
        ({"kind": "remote", "served_as": "m", "url": "http://me:secret@there"}, "$.engines.small.url"),
        ({"kind": "llamacpp", "room": {"memory_gb": float("inf")}}, "$.engines.small.room.memory_gb"),
        ({"kind": "llamacpp", "env": {"A": {}}}, "$.engines.small.env.A"),
        ({"kind": "llamacpp", "contexts": 1}, "contexts"),
        ({"kind": "sim", "quantization": "awq"}, "$.engines.small.quantization"),
        ({"kind": "sim", "served_as": "a\x1b[31m"}, "$.engines.small.served_as"),
        ({"kind": "nothing"}, "engines.small.kind"),
        ({}, "kind"),
    ],
)
def test_what_cannot_be_is_named(engine: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("$", r"\$").replace(".", r"\.")):
        one(**engine)


def test_an_engine_has_a_name_of_its_own() -> None:
    for name in ("gateway", "supervisor"):
        with pytest.raises(SpecError, match=rf"\$\.engines\.{name}"):
            of({"engines": {name: {"kind": "llamacpp"}}, "gateway": {}})


def test_an_edge_stands_before_all_copies_of_the_gateway() -> None:
    tree = {"engines": {"small": {"kind": "llamacpp"}}, "gateway": {"copies": 2}, "edge": {"tls": TLS}}
    stack = stack_of(tree, "s")
    place = msgspec.structs.replace(
        PLACE, ports={name: 9000 + i for i, name in enumerate(service_names(stack))}, programs={"nginx": "/bin/nginx"}
    )
    blueprint = composed(stack, place)
    edge = blueprint.processes[-1]
    assert edge.needs == ("gateway", "gateway-2")
    assert edge.argv == ("/bin/nginx", "-e", "stderr", "-p", "/stacks/s/", "-c", "/stacks/s/edge.conf")
    assert (blueprint.door, edge.health_url) == ("https://127.0.0.1:9003", "http://127.0.0.1:9004/health")
    assert re.findall(r"server (127\S+)", edge.files["edge.conf"]) == ["127.0.0.1:9001", "127.0.0.1:9002"]
    assert 'ssl_certificate "/c.pem";' in edge.files["edge.conf"]


@pytest.mark.parametrize("tree", [{}, {"engines": {}}, {"engines": {"A b": {"kind": "llamacpp"}}}])
def test_a_stack_has_engines_of_good_names(tree: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="The stack is wrong"):
        stack_of(tree, "x")


def test_an_agent_stands_in_front_of_the_gateway() -> None:
    tree = {"engines": {"small": {"kind": "llamacpp"}}, "gateway": {}, "agent": {"config": {"limits": {"steps": 3}}}}
    blueprint = of(tree)
    agent = blueprint.processes[-1]
    assert (blueprint.door, blueprint.model) == ("http://127.0.0.1:9004", "agent")
    assert agent.needs == ("gateway",)
    assert agent.argv == ("/ours/python", "-P", "-m", "withstand.agent", "/stacks/s/agent.json")
    assert msgspec.json.decode(agent.files["agent.json"]) == {
        "listen": "127.0.0.1:9004",
        "model": {"base_url": "http://127.0.0.1:9003", "name": "smol", "way": "schema"},
        "limits": {"steps": 3},
    }


@pytest.mark.parametrize(
    ("config", "gateway", "way"),
    [
        ({}, {"gateway": {}}, "schema"),
        ({"model": {"name": "smol"}}, {"gateway": {}}, "schema"),
        ({"model": {"name": "llama"}}, {"gateway": {}}, None),
        ({"model": {"name": "llama", "way": "schema"}}, {"gateway": {}}, "schema"),
        ({"model": {"name": "llama"}}, {}, "schema"),
    ],
)
def test_an_agent_calls_tools_as_the_model_that_it_names_can(
    config: dict[str, Any], gateway: dict[str, Any], way: str | None
) -> None:
    vllm = {"kind": "vllm", "python": "p", "model": "/models/llama"}
    engines = {"small": {"kind": "llamacpp"}, "big": vllm}
    agent = of({"engines": engines, "agent": {"config": config}} | gateway).processes[-1]
    assert msgspec.json.decode(agent.files["agent.json"])["model"].get("way") == way


def test_an_agent_of_a_remote_engine_has_its_key() -> None:
    remote = {"kind": "remote", "url": "https://there/v1", "served_as": "big", "api_key": {"from_env": "K"}}
    blueprint = of({"engines": {"any": remote}, "agent": {"config": {"name": "helper"}}})
    assert blueprint.model == "helper"
    (agent,) = blueprint.processes
    assert agent.needs == ()
    assert msgspec.json.decode(agent.files["agent.json"])["model"] == {
        "base_url": "https://there",
        "name": "big",
        "api_key_env": "K",
    }


def test_the_gateway_looks_at_engines_where_they_answer_unless_it_is_told_not_to() -> None:
    """A dead engine is known in less than 2 s; an engine of others may not have the path."""
    served = {"args": ["x"], "served_as": "m"}
    engines = {
        "small": {"kind": "command", **served, "health": "/alive"},
        "big": {"kind": "command", **served},
        "c": {"kind": "remote", "url": "http://there", "served_as": "other"},
    }
    [file] = of({"engines": engines, "gateway": {}}).processes[-1].files.values()
    models = gateway_config_of(msgspec.json.decode(file)).models
    asked = {seat.url: models["m"].health_of(seat) for seat in models["m"].engines}
    assert [health and health.path for health in asked.values()] == ["/alive", "/health"]
    assert all(health and health.every_s * health.unhealthy < 2 for health in asked.values())
    hangs_s = [health.every_s + health.timeout_s * health.unhealthy for health in asked.values() if health]
    assert max(hangs_s) < 16, "checks that wait come one after another"
    assert models["other"].health_of(models["other"].engines[0]) is None
    off = {"engines": {"small": engines["small"]}, "gateway": {"config": {"models": {"m": {"health": False}}}}}
    [file] = of(off).processes[-1].files.values()
    models = gateway_config_of(msgspec.json.decode(file)).models
    assert models["m"].health_of(models["m"].engines[0]) is None
