"""TensorRT-LLM's server: what its command line cannot say stands in a file beside it."""

from typing import Any, Final

import msgspec

from withstand.spec.stack import Engine
from withstand.stack.blueprint import Place, Process, upkeep_of
from withstand.stack.engines.kind import Kind, Small, folder_of, model_name, options, program, refuse
from withstand.stack.ports import HOST

_CANNOT = ("threads", "lmcache", "role")
_GB = 10**9


class TrtLlm:
    """``trtllm-serve``: that of ``python``'s environment, ``binary``, or the one on the path."""

    small: Small | None = "folder"

    def process(self, name: str, told: Engine, place: Place) -> Process:
        """Its file is YAML, of which JSON is a part."""
        refuse(name, told, _CANNOT, "trtllm")
        file, config = f"{name}.trtllm.json", _config(told)
        return Process(
            name=name,
            kind="trtllm",
            argv=(
                *(program(told, "trtllm-serve"), "serve", folder_of(name, told, place)),
                *("--host", HOST, "--port", str(place.ports[name])),
                *("--served_model_name", self.model(told, place)),
                *options(
                    (
                        ("--max_seq_len", told.context),
                        ("--max_batch_size", told.max_sequences),
                        ("--tp_size", told.tensor_parallel),
                        ("--extra_llm_api_options", str(place.folder / file) if config else None),
                    )
                ),
                *told.args,
            ),
            env=told.env,
            port=place.ports[name],
            health=told.health or "/health",
            metrics="/prometheus/metrics",
            files={file: msgspec.json.format(msgspec.json.encode(config), indent=2).decode() + "\n"} if config else {},
            upkeep=upkeep_of(told),
        )

    def model(self, told: Engine, place: Place) -> str:
        """As asked for, or the last part of the folder's name."""
        return model_name(told, place)


def _config(told: Engine) -> dict[str, Any]:
    """Fields of its ``LlmArgs``."""
    cache = {
        "enable_block_reuse": told.prefix_caching,
        "max_gpu_total_bytes": told.kv_cache_gb and int(told.kv_cache_gb * _GB),
        "host_cache_size": told.kv_offload_gb and int(told.kv_offload_gb * _GB),
    }
    said = {
        "dtype": told.dtype,
        "quant_config": {"quant_algo": told.quantization} if told.quantization else None,
        "enable_chunked_prefill": told.chunked_prefill,
        "load_format": "dummy" if told.dummy_weights else None,
        "speculative_config": _speculative(told),
        "kv_cache_config": _given(cache) or None,
    }
    return _given(said)


def _speculative(told: Engine) -> dict[str, Any] | None:
    if told.speculative is None:
        return None
    if told.speculative.draft_model is None:
        return {"decoding_type": "NGram", "max_draft_len": told.speculative.tokens}
    draft = {"speculative_model": told.speculative.draft_model, "max_draft_len": told.speculative.tokens}
    return {"decoding_type": "Draft_Target", **draft}


def _given(tree: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in tree.items() if value is not None}


ENGINE: Final[Kind] = TrtLlm()
