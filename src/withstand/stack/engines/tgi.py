"""Text Generation Inference's launcher."""

from typing import Final

from withstand.spec.mistake import wrong
from withstand.spec.stack import Engine
from withstand.stack.blueprint import Place, Process, upkeep_of
from withstand.stack.engines.kind import Kind, Small, folder_of, model_name, options, refuse
from withstand.stack.ports import HOST

_CANNOT = ("python", "threads", "kv_cache_gb", "kv_offload_gb", "lmcache", "dummy_weights", "role")


class Tgi:
    """``text-generation-launcher``, or ``binary``. It answers to whatever name a request asks for."""

    small: Small | None = "folder"

    def process(self, name: str, told: Engine, place: Place) -> Process:
        """Its speculation is by n-grams, or by the heads of a Medusa model; prefix caching is a variable."""
        refuse(name, told, _CANNOT, "tgi")
        if told.speculative and told.speculative.draft_model:
            raise wrong(f"engines.{name}.speculative.draft_model", "tgi has no draft model; leave it out")
        return Process(
            name=name,
            kind="tgi",
            argv=(
                *(told.binary or "text-generation-launcher", "--model-id", folder_of(name, told, place)),
                *("--hostname", HOST, "--port", str(place.ports[name])),
                *options(
                    (
                        ("--max-total-tokens", told.context),
                        ("--max-batch-size", told.max_sequences),
                        ("--dtype", told.dtype),
                        ("--quantize", told.quantization),
                        ("--num-shard", told.tensor_parallel),
                        ("--speculate", told.speculative and told.speculative.tokens),
                    )
                ),
                *told.args,
            ),
            env={
                **_variable("PREFIX_CACHING", told.prefix_caching),
                **_variable("PREFILL_CHUNKING", told.chunked_prefill),
                **told.env,
            },
            port=place.ports[name],
            health=told.health or "/health",
            metrics="/metrics",
            upkeep=upkeep_of(told),
        )

    def model(self, told: Engine, place: Place) -> str:
        """As asked for, or the last part of the folder's name."""
        return model_name(told, place)


def _variable(name: str, on: bool | None) -> dict[str, str]:
    return {} if on is None else {name: "1" if on else "0"}


ENGINE: Final[Kind] = Tgi()
