"""``transformers serve``: the reference, slow and exact."""

from typing import Final

from withstand.spec.stack import Engine
from withstand.stack.blueprint import Place, Process, upkeep_of
from withstand.stack.engines.kind import Kind, Small, folder_of, model_name, options, program, refuse
from withstand.stack.ports import HOST

_CANNOT = (
    *("context", "max_sequences", "tensor_parallel", "prefix_caching", "chunked_prefill", "speculative"),
    *("kv_cache_gb", "kv_offload_gb", "lmcache", "dummy_weights", "role"),
)


class Transformers:
    """One model for all requests, whatever name they ask for; ``args = ["--continuous-batching"]`` for more at once."""

    small: Small | None = "folder"

    def process(self, name: str, told: Engine, place: Place) -> Process:
        """It has no metrics."""
        refuse(name, told, _CANNOT, "transformers")
        return Process(
            name=name,
            kind="transformers",
            argv=(
                *(program(told, "transformers"), "serve", folder_of(name, told, place)),
                *("--host", HOST, "--port", str(place.ports[name])),
                *options((("--dtype", told.dtype), ("--quantization", told.quantization))),
                *told.args,
            ),
            env={**({"OMP_NUM_THREADS": str(told.threads)} if told.threads else {}), **told.env},
            port=place.ports[name],
            health=told.health or "/health",
            upkeep=upkeep_of(told),
        )

    def model(self, told: Engine, place: Place) -> str:
        """As asked for, or the last part of the folder's name."""
        return model_name(told, place)


ENGINE: Final[Kind] = Transformers()
