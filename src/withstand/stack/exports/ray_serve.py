"""A stack's vLLM engines as an application of Ray Serve LLM. Pure."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from withstand.spec.mistake import wrong
from withstand.spec.stack import Engine, Secret, Stack
from withstand.stack.engines.vllm import GB, cpu_build
from withstand.stack.exports.secrets import key_of, variable_of
from withstand.stack.exports.yaml import document

_BUILDER, _PD_BUILDER = "build_openai_app", "build_pd_openai_app"
_PREFIX_ROUTER = "ray.serve.llm.request_router.PrefixCacheAffinityRouter"
_WORDS: Final[Mapping[str, str]] = {
    "context": "max_model_len",
    "max_sequences": "max_num_seqs",
    "dtype": "dtype",
    "quantization": "quantization",
    "tensor_parallel": "tensor_parallel_size",
    "prefix_caching": "enable_prefix_caching",
    "chunked_prefill": "enable_chunked_prefill",
    "kv_offload_gb": "kv_offloading_size",
}
_NONE: Final[Mapping[str, int]] = {}
_ENV: Final = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


def ray_serve(stack: Stack) -> dict[str, str]:
    """``serve.yaml``, as ``serve deploy`` reads it.

    Raises:
        SpecError: an engine cannot run on Ray as it is described.
    """
    return {"serve.yaml": document(serve_config(_with_references(that_fits(stack))))}


def that_fits(stack: Stack) -> Stack:
    """The stack without the engines that Ray Serve LLM does not run.

    Raises:
        SpecError: nothing is left.
    """
    unfit = unfit_for_ray(stack)
    if not any(engine.kind == "vllm" for engine in stack.engines.values()):
        kinds = ", ".join(dict.fromkeys(engine.kind for engine in stack.engines.values()))
        raise wrong("engines", f"Ray Serve LLM runs vllm, and there is none among these ({kinds})")
    kept = {name: engine for name, engine in stack.engines.items() if name not in unfit}
    return msgspec.structs.replace(stack, engines=kept)


def unfit_for_ray(stack: Stack) -> dict[str, str]:
    """Engine → what to do instead."""
    return {
        name: f"Ray Serve LLM runs vllm, not {engine.kind}: export it to compose or kubernetes"
        for name, engine in stack.engines.items()
        if engine.kind not in {"vllm", "remote"}
    }


def wanted_of_nodes(stack: Stack) -> dict[str, str]:
    """What the file cannot bring: what it is → where each node of the cluster has to have it."""
    stack = that_fits(stack)
    engines = [stack.engines[name] for name in on_ray(stack)]
    keys = {key_of(value): None for engine in engines for value in engine.env.values() if isinstance(value, Secret)}
    paths = {engine.model: None for engine in engines if engine.model and engine.model.startswith("/")}
    return {
        **{f"the value of {key}": f"set {variable_of(key)} on each node, before its `ray start`" for key in keys},
        **{f"the model {path}": "have it at this path on each node" for path in paths},
    }


def _with_references(stack: Stack) -> Stack:
    """Secrets as ``${NAME}``, for which Ray puts the node's own variable; it knows no other reference."""
    engines = {
        name: msgspec.structs.replace(engine, env={key: _reference(value) for key, value in engine.env.items()})
        for name, engine in stack.engines.items()
    }
    return msgspec.structs.replace(stack, engines=engines)


def _reference(value: str | Secret) -> str:
    return f"${{{variable_of(key_of(value))}}}" if isinstance(value, Secret) else value


def serve_config(stack: Stack) -> dict[str, Any]:
    """The file's content."""
    http = {"host": "0.0.0.0", "port": 8000}  # noqa: S104  a cluster's proxies are asked from elsewhere
    return {"proxy_location": "EveryNode", "http_options": http, "applications": [application(stack)]}


def application(stack: Stack, side_ports: Mapping[str, int] = _NONE) -> dict[str, Any]:
    """Its builder, and what that is told. ``side_ports``: where prefill and decode speak of their caches."""
    engines = _engines(stack)
    apart = {engine.role: llm_config(name, engine, stack) for name, engine in engines.items() if engine.role}
    if not apart:
        _check_model_ids(engines)
        told: dict[str, Any] = {"llm_configs": [llm_config(name, engine, stack) for name, engine in engines.items()]}
        builder = _BUILDER
    elif set(apart) == {"prefill", "decode"} and len(engines) == len(apart):
        told, builder = {f"{role}_config": apart[role] for role in ("prefill", "decode")}, _PD_BUILDER
        for name, engine in engines.items():
            if engine.role and name in side_ports:
                apart[engine.role]["experimental_configs"]["NIXL_SIDE_CHANNEL_PORT_BASE"] = side_ports[name]
        if apart["prefill"]["model_loading_config"]["model_id"] != apart["decode"]["model_loading_config"]["model_id"]:
            raise wrong("engines", "prefill and decode are of one model; give both the same served_as")
    else:
        raise wrong("engines", "Ray wants one engine for prefill and one for decode, and no others beside them")
    return {"name": stack.name, "route_prefix": "/", "import_path": f"ray.serve.llm:{builder}", "args": told}


def _check_model_ids(engines: Mapping[str, Engine]) -> None:
    owners = dict[str, str]()
    for name, engine in engines.items():
        if model_id(engine) and (owner := owners.setdefault(model_id(engine), name)) != name:
            what = f"{owner} is served as {model_id(engine)!r} too, and Ray wants another name for each"
            raise wrong(f"engines.{name}.served_as", f"{what}; or take one engine with deploy.min_replicas")


def on_ray(stack: Stack) -> list[str]:
    """Names of the engines that run there."""
    return list(_engines(stack))


def _engines(stack: Stack) -> dict[str, Engine]:
    for name, engine in stack.engines.items():
        if engine.kind not in {"vllm", "remote"}:
            raise wrong(f"engines.{name}.kind", f"Ray Serve LLM runs vllm, not {engine.kind}")
    found = {name: engine for name, engine in stack.engines.items() if engine.kind == "vllm"}
    if not found:
        raise wrong("engines", "Ray has nothing to run; there is no engine of kind vllm")
    return found


def model_id(engine: Engine) -> str:
    """The model's name in requests."""
    return engine.served_as or (engine.model or "").rstrip("/").rpartition("/")[2]


def llm_config(name: str, engine: Engine, stack: Stack) -> dict[str, Any]:
    """One model, as ``ray.serve.llm.LLMConfig`` has it."""
    if not engine.model:
        raise wrong(f"engines.{name}.model", "vLLM wants a model's folder or name; give it")
    deploy = engine.deploy
    replicas = {
        "min_replicas": deploy.min_replicas,
        "max_replicas": deploy.most_replicas,
        "target_ongoing_requests": deploy.target_requests,
        "downscale_delay_s": deploy.idle_s,
    }
    if deploy.min_replicas == 0:
        replicas |= {"initial_replicas": 0, "downscale_to_zero_delay_s": deploy.idle_s}
    deployment: dict[str, Any] = {
        "autoscaling_config": replicas,
        "max_ongoing_requests": 2 * deploy.target_requests,
        "graceful_shutdown_timeout_s": deploy.longest_stream_s,
        "graceful_shutdown_wait_loop_s": 1.0,
    }
    if stack.ray.prefix_aware:
        deployment["request_router_config"] = {"request_router_class": _PREFIX_ROUTER}
    if not deploy.gpus:
        deployment["ray_actor_options"] = {"num_cpus": 0}
    config: dict[str, Any] = {
        "model_loading_config": {"model_id": model_id(engine), "model_source": engine.model},
        "engine_kwargs": _engine_kwargs(name, engine),
        "deployment_config": deployment,
        "runtime_env": {"env_vars": {**_ENV, **cpu_build(engine), **_plain(engine)}},
        # Ray gathers tokens for 50 ms by itself: TTFT comes 50 ms late, and most gaps between tokens are 0.
        "experimental_configs": {"stream_batching_interval_ms": stack.ray.stream_batching_ms},
    }
    if not deploy.gpus:
        config["accelerator_config"] = {"kind": "cpu"}
    elif deploy.gpu:
        config["accelerator_type"] = deploy.gpu
    return config


def _plain(engine: Engine) -> dict[str, str]:
    """Secrets come otherwise: by the nodes' environment."""
    return {name: value for name, value in engine.env.items() if isinstance(value, str)}


def _engine_kwargs(name: str, engine: Engine) -> dict[str, Any]:
    told = {word: getattr(engine, key) for key, word in _WORDS.items() if getattr(engine, key) is not None}
    if engine.kv_cache_gb:
        told["kv_cache_memory_bytes"] = int(engine.kv_cache_gb * GB)
    if engine.speculative:
        draft = {"num_speculative_tokens": engine.speculative.tokens}
        model = engine.speculative.draft_model
        draft_by = {"model": model} if model else {"method": "ngram", "prompt_lookup_max": 4}
        told["speculative_config"] = {**draft_by, **draft}
    if engine.lmcache:
        told["kv_transfer_config"] = {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}
    elif engine.role:
        told["kv_transfer_config"] = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
        if not engine.deploy.gpus:
            told["kv_transfer_config"]["kv_buffer_device"] = "cpu"
    if engine.dummy_weights:
        told["load_format"] = "dummy"
    return told | dict(_from_arguments(name, engine.args))


def _from_arguments(name: str, args: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """``--some-flag value`` as ``some_flag = value``; a flag alone is True, ``--no-flag`` False."""
    waiting = list(args)
    while waiting:
        flag, equals, value = waiting.pop(0).partition("=")
        if not flag.startswith("--"):
            raise wrong(f"engines.{name}.args", f"Ray takes --flag value pairs, and {flag!r} is none")
        word = flag[2:].replace("-", "_")
        if equals:
            yield word, _value(value)
        elif waiting and not waiting[0].startswith("--"):
            yield word, _value(waiting.pop(0))
        else:
            yield word.removeprefix("no_"), not word.startswith("no_")


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
