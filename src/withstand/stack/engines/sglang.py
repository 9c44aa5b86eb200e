"""SGLang, in the user's own environment."""

from typing import Final

from withstand.spec.stack import Engine
from withstand.stack.blueprint import Place, Process, upkeep_of
from withstand.stack.engines.kind import Kind, Small, folder_of, model_name, options, refuse, required
from withstand.stack.ports import HOST

_CANNOT = ("binary", "kv_cache_gb")
_REASON = r"((?:[A-Z]\w+Error|error): .+)"
_NO_CHUNKS = -1
_ENV = {"SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "0"}
"""Else each ``/health`` takes a second or more, and generates a token while the engine is measured."""


class SgLang:
    """``python -m sglang.launch_server``."""

    small: Small | None = "folder"

    def process(self, name: str, told: Engine, place: Place) -> Process:
        """It counts its KV cache in tokens (``--max-total-tokens``), so gigabytes are refused."""
        refuse(name, told, _CANNOT, "sglang")
        python = required(name, told, "python", "SGLang runs in an environment of its own")
        is_prefill = told.role == "prefill"
        return Process(
            name=name,
            kind="sglang",
            argv=(
                *(python, "-m", "sglang.launch_server", "--model-path", folder_of(name, told, place)),
                *("--served-model-name", self.model(told, place)),
                *("--host", HOST, "--port", str(place.ports[name]), "--enable-metrics", "--enable-cache-report"),
                *options(
                    (
                        ("--context-length", told.context),
                        ("--max-running-requests", told.max_sequences),
                        ("--dtype", told.dtype),
                        ("--quantization", told.quantization),
                        ("--tp-size", told.tensor_parallel),
                        ("--disable-radix-cache", told.prefix_caching is False),
                        ("--chunked-prefill-size", _NO_CHUNKS if told.chunked_prefill is False else None),
                        *_speculative(told),
                        ("--enable-hierarchical-cache", told.kv_offload_gb is not None),
                        ("--hicache-size", told.kv_offload_gb and max(1, round(told.kv_offload_gb))),
                        ("--enable-lmcache", told.lmcache),
                        ("--load-format", "dummy" if told.dummy_weights else None),
                        ("--disaggregation-mode", told.role),
                        ("--disaggregation-bootstrap-port", place.side_ports.get(name) if is_prefill else None),
                    )
                ),
                *told.args,
            ),
            env={**_ENV, **({"OMP_NUM_THREADS": str(told.threads)} if told.threads else {}), **told.env},
            port=place.ports[name],
            health=told.health or "/health",
            metrics="/metrics",
            reason=_REASON,
            disaggregation="sglang",
            bootstrap_port=place.side_ports.get(name) if is_prefill else None,
            upkeep=upkeep_of(told),
        )

    def model(self, told: Engine, place: Place) -> str:
        """As asked for, or the last part of the folder's name."""
        return model_name(told, place)


def _speculative(told: Engine) -> tuple[tuple[str, object], ...]:
    """A draft model proposes a chain: one candidate a step, and the token that the model itself adds."""
    wanted = told.speculative
    if wanted is None:
        return ()
    if wanted.draft_model is None:
        return (("--speculative-algorithm", "NGRAM"), ("--speculative-num-draft-tokens", wanted.tokens))
    return (
        ("--speculative-algorithm", "STANDALONE"),
        ("--speculative-draft-model-path", wanted.draft_model),
        ("--speculative-num-steps", wanted.tokens),
        ("--speculative-eagle-topk", 1),
        ("--speculative-num-draft-tokens", wanted.tokens + 1),
    )


ENGINE: Final[Kind] = SgLang()
