"""Any server at all: a command of the user's that listens where it is told to."""

from typing import Final

from withstand.spec.mistake import wrong
from withstand.spec.stack import Engine
from withstand.stack.blueprint import Place, Process, upkeep_of
from withstand.stack.engines.kind import Kind, Small, refuse, required

_PORT = "{port}"
_CANNOT = (
    *(
        "python",
        "binary",
        "context",
        "max_sequences",
        "threads",
        "dtype",
        "quantization",
        "tensor_parallel",
        "prefix_caching",
    ),
    *("chunked_prefill", "speculative", "kv_cache_gb", "kv_offload_gb", "lmcache", "dummy_weights", "role"),
)


class Command:
    """``args`` is the command; ``{port}`` in it, and the variable ``PORT``, tell where it shall listen."""

    small: Small | None = None

    def process(self, name: str, told: Engine, place: Place) -> Process:
        """As it was written down."""
        refuse(name, told, _CANNOT, "a command")
        if not told.args:
            raise wrong(f"engines.{name}.args", "a command is needed; give it")
        required(name, told, "served_as", "nobody knows the model's name in requests")
        port = place.ports[name]
        return Process(
            name=name,
            kind="command",
            argv=tuple(part.replace(_PORT, str(port)) for part in told.args),
            env={"PORT": str(port), **told.env},
            port=port,
            health=told.health or "/health",
            metrics="/metrics",
            upkeep=upkeep_of(told),
        )

    def model(self, told: Engine, place: Place) -> str:  # noqa: ARG002  the protocol's
        """As it is said."""
        return told.served_as or ""


ENGINE: Final[Kind] = Command()
