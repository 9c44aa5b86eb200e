"""vLLM, on GPUs or as the CPU build of PyPI, in the user's own environment."""

import json
from typing import Final

from withstand.spec.stack import Engine
from withstand.stack.blueprint import Place, Process, upkeep_of
from withstand.stack.engines.kind import Kind, Small, folder_of, model_name, options, refuse, required
from withstand.stack.ports import HOST

_ENV = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
GB: Final = 10**9
_REASON = r"(?:ERROR|Error).*?((?:[A-Z]\w+Error|error): .+)"
_LMCACHE = {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}
_NIXL = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}


class Vllm:
    """``vllm serve``."""

    small: Small | None = "folder"

    def process(self, name: str, told: Engine, place: Place) -> Process:
        """By its module: the environment's ``bin`` need not be on the path."""
        refuse(name, told, ("binary",), "vllm")
        python = required(name, told, "python", "vLLM runs in an environment of its own")
        model = folder_of(name, told, place)
        port = place.ports[name]
        return Process(
            name=name,
            kind="vllm",
            argv=(
                *(python, "-m", "vllm.entrypoints.cli.main", "serve", model),
                *("--host", HOST, "--port", str(port), "--served-model-name", self.model(told, place)),
                *options(
                    (
                        ("--max-model-len", told.context),
                        ("--max-num-seqs", told.max_sequences),
                        ("--dtype", told.dtype),
                        ("--quantization", told.quantization),
                        ("--tensor-parallel-size", told.tensor_parallel),
                        (_switch("enable-prefix-caching", told.prefix_caching), told.prefix_caching is not None),
                        (_switch("enable-chunked-prefill", told.chunked_prefill), told.chunked_prefill is not None),
                        ("--speculative-config", _speculative(told)),
                        ("--kv-cache-memory-bytes", told.kv_cache_gb and int(told.kv_cache_gb * GB)),
                        ("--kv-offloading-size", told.kv_offload_gb),
                        ("--kv-transfer-config", _transfer(told)),
                        ("--load-format", "dummy" if told.dummy_weights else None),
                    )
                ),
                *told.args,
            ),
            env={**_ENV, **cpu_build(told), **_nixl(name, told, place), **told.env},
            port=port,
            health=told.health or "/health",
            metrics="/metrics",
            reason=_REASON,
            disaggregation="vllm_nixl",
            upkeep=upkeep_of(told),
        )

    def model(self, told: Engine, place: Place) -> str:
        """As asked for, or the last part of the folder's name."""
        return model_name(told, place)


def _switch(name: str, on: bool | None) -> str:
    return f"--{name}" if on else f"--no-{name}"


def _speculative(told: Engine) -> str | None:
    if told.speculative is None:
        return None
    tokens = {"num_speculative_tokens": told.speculative.tokens}
    if told.speculative.draft_model is None:
        return json.dumps({"method": "ngram", "prompt_lookup_max": 4, **tokens})
    return json.dumps({"model": told.speculative.draft_model, **tokens})


def _transfer(told: Engine) -> str | None:
    if told.lmcache and told.role:
        both = {"connectors": [_NIXL, _LMCACHE]}
        return json.dumps({"kv_connector": "MultiConnector", "kv_role": "kv_both", "kv_connector_extra_config": both})
    if told.lmcache:
        return json.dumps(_LMCACHE)
    return json.dumps(_NIXL) if told.role else None


def cpu_build(told: Engine) -> dict[str, str]:
    """Environment of the CPU build: its cores and its cache, whole GiB; else it takes most of the memory."""
    said = {
        "VLLM_CPU_KVCACHE_SPACE": told.kv_cache_gb and max(1, round(told.kv_cache_gb)),
        "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, told.room.cpus)) or None,
        "OMP_NUM_THREADS": told.threads,
    }
    return {key: str(value) for key, value in said.items() if value is not None}


def _nixl(name: str, told: Engine, place: Place) -> dict[str, str]:
    """Where prefill and decode speak of their caches."""
    if told.role is None:
        return {}
    return {"VLLM_NIXL_SIDE_CHANNEL_HOST": HOST, "VLLM_NIXL_SIDE_CHANNEL_PORT": str(place.side_ports[name])}


ENGINE: Final[Kind] = Vllm()
