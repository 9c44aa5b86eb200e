"""Ollama: one server for models that it has by name; all of its settings are variables."""

from typing import Final

from withstand.spec.mistake import wrong
from withstand.spec.stack import Engine
from withstand.stack.blueprint import Place, Process, upkeep_of
from withstand.stack.engines.kind import Kind, Small, refuse, required
from withstand.stack.ports import HOST

_CANNOT = (
    *("python", "threads", "dtype", "quantization", "tensor_parallel", "prefix_caching", "chunked_prefill"),
    *("speculative", "kv_cache_gb", "kv_offload_gb", "lmcache", "dummy_weights", "role"),
)


class Ollama:
    """``ollama serve``, or ``binary``."""

    small: Small | None = None

    def process(self, name: str, told: Engine, place: Place) -> Process:
        """The model is one that it has pulled or created before; it stays loaded."""
        refuse(name, told, _CANNOT, "ollama")
        model = required(name, told, "model", "Ollama wants the name of a model that it has")
        if told.served_as not in {None, model}:
            what = f"Ollama serves a model under its own name; give it that one: ollama cp {model} {told.served_as}"
            raise wrong(f"engines.{name}.served_as", what)
        settings = {"OLLAMA_NUM_PARALLEL": told.max_sequences, "OLLAMA_CONTEXT_LENGTH": told.context}
        return Process(
            name=name,
            kind="ollama",
            argv=(told.binary or "ollama", "serve", *told.args),
            env={
                "OLLAMA_HOST": f"{HOST}:{place.ports[name]}",
                "OLLAMA_KEEP_ALIVE": "-1",
                **{key: str(value) for key, value in settings.items() if value is not None},
                **told.env,
            },
            port=place.ports[name],
            health=told.health or "/api/version",
            upkeep=upkeep_of(told),
        )

    def model(self, told: Engine, place: Place) -> str:  # noqa: ARG002  the protocol's
        """Its own name for it."""
        return told.model or ""


ENGINE: Final[Kind] = Ollama()
