"""llama.cpp's server, as ``xllamacpp`` carries it."""

from typing import Final

from withstand.errors import SpecError
from withstand.spec.stack import Engine
from withstand.stack.blueprint import Place, Process, upkeep_of
from withstand.stack.engines.kind import Kind, refuse
from withstand.stack.llamacpp import ENV, REASON, Settings, arguments
from withstand.stack.ports import HOST

_CANNOT = (
    *("tensor_parallel", "quantization", "dtype", "prefix_caching", "chunked_prefill", "speculative"),
    *("kv_cache_gb", "kv_offload_gb", "lmcache", "dummy_weights", "role"),
)
_CONTEXT, _SEQUENCES, _THREADS_MAX = 2048, 8, 8


class LlamaCpp:
    """Serves a GGUF file."""

    def process(self, name: str, told: Engine, place: Place) -> Process:
        """A child of our own Python. The weights' quantization is that of the file."""
        refuse(name, told, _CANNOT, "llamacpp")
        path = told.model or place.small_model
        if path is None:
            raise SpecError(f"The stack is wrong: a GGUF file is needed - at `$.engines.{name}.model`; name one.")
        sequences = told.max_sequences or _SEQUENCES
        settings = Settings(
            host=HOST,
            port=place.ports[name],
            parallel=sequences,
            context=(told.context or _CONTEXT) * sequences,
            threads=told.threads or min(place.threads, _THREADS_MAX),
        )
        return Process(
            name=name,
            kind="llamacpp",
            argv=(
                *(told.python or place.python, "-P", "-m", "withstand.stack.llamacpp_server"),
                *arguments(str(path), self.model(told, place), settings),
                *told.args,
            ),
            env={**ENV, **told.env},
            port=settings.port,
            health=told.health or "/health",
            metrics="/metrics",
            reason=REASON,
            upkeep=upkeep_of(told),
        )

    def model(self, told: Engine, place: Place) -> str:
        """As asked for, or the file's own."""
        return told.served_as or (told.model.rpartition("/")[2] if told.model else place.small_model_name)


ENGINE: Final[Kind] = LlamaCpp()
