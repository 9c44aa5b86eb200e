"""A simulated engine: a queueing model behind HTTP, which computes nothing. Its model's name says so."""

from typing import Final

from withstand.sim import simulated_name
from withstand.spec.stack import Engine
from withstand.stack.blueprint import Place, Process, upkeep_of
from withstand.stack.engines.kind import Kind, Small, options, refuse
from withstand.stack.ports import HOST

_CANNOT = (
    *("python", "threads", "dtype", "quantization", "tensor_parallel", "speculative"),
    *("kv_cache_gb", "kv_offload_gb", "lmcache", "dummy_weights"),
)


class Sim:
    """``model`` is a file that ``withstand fit`` has written; None = made-up figures."""

    small: Small | None = None

    def process(self, name: str, told: Engine, place: Place) -> Process:
        """A child of our own Python. A role changes nothing here: each engine can do either part."""
        refuse(name, told, _CANNOT, "sim")
        port = place.ports[name]
        return Process(
            name=name,
            kind="sim",
            argv=(
                *(place.python, "-P", "-m", "withstand.testing.sim", "--host", HOST, "--port", str(port)),
                *("--model", self.model(told, place)),
                *options([("--parameters", told.model)]),
                *options(("--set", change) for change in _changes(told)),
                *told.args,
            ),
            env=told.env,
            port=port,
            health=told.health or "/health",
            metrics="/metrics",
            disaggregation="vllm_nixl",
            reason=r"Error: (.+)",
            upkeep=upkeep_of(told),
        )

    def model(self, told: Engine, place: Place) -> str:  # noqa: ARG002  the protocol's
        """Marked as simulated, whatever name is wanted."""
        return simulated_name(told.served_as)


def _changes(told: Engine) -> list[str]:
    keys = ("context", "max_sequences", "prefix_caching", "chunked_prefill")
    values = [(key, getattr(told, key)) for key in keys]
    return [f"{key}={str(value).lower()}" for key, value in values if value is not None]


ENGINE: Final[Kind] = Sim()
