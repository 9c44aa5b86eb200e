"""How llama.cpp's server is run, as the package ``xllamacpp`` carries it. Pure: the server itself is the child's."""

import importlib.util
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Final

import msgspec

from withstand.errors import EngineError, extra
from withstand.stack.model import ModelFile
from withstand.stack.service import Service

_NEEDS = ("xllamacpp", "gguf", "numpy")

SERVER: Final = "withstand.stack.llamacpp_server"

ENV: Final = {
    # Without it, OpenMP's threads spin for each other, and one busy neighbour on a core (a client that measures is
    # one) slows the engine a hundredfold. docs/embedded-engine.md has the figures.
    "GOMP_SPINCOUNT": "1000",
}

REASON: Final = r" E .*?(error loading model: .+|couldn't bind .+)"
"""Where its log says why it does not start; the lines after it only say that it does not."""

_BUFFER_BYTES = 450_000_000
_KV_BYTES_PER_TOKEN = 23_040  # SmolLM2-135M: 30 layers x 2 x 3 heads x 64 x 2 bytes


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How it shall serve. ``context`` counts tokens over all ``parallel`` slots together."""

    host: str
    port: int
    parallel: int
    context: int
    threads: int

    @property
    def base_url(self) -> str:
        """Where it will listen."""
        return f"http://{self.host}:{self.port}"


def name() -> str:
    """``llama.cpp (xllamacpp 2026.10.11549)``."""
    if absent := missing():
        raise EngineError(
            f"The embedded engine is not installed ({', '.join(absent)} missing): "
            f"{extra('engine')}, or measure another endpoint by --base-url."
        )
    return f"llama.cpp (xllamacpp {metadata.version('xllamacpp')})"


def missing(needs: Iterable[str] | None = None) -> list[str]:
    """Packages that are not installed beside us: of what the server needs, or of these."""
    return [name for name in (_NEEDS if needs is None else needs) if importlib.util.find_spec(name) is None]


def memory_bytes(model: ModelFile, settings: Settings) -> int:
    """The weights, the KV cache of a small model, and llama.cpp's own buffers."""
    return model.path.stat().st_size + settings.context * _KV_BYTES_PER_TOKEN + _BUFFER_BYTES


def service(model: ModelFile, settings: Settings, log_file: Path) -> Service:
    """A child of this Python, which ends when we do."""
    return Service(
        name="The embedded engine",
        argv=(
            *(sys.executable, "-P", "-m", SERVER),
            *arguments(str(model.path), model.name, settings),
        ),
        env=dict(ENV),
        log_file=log_file,
        health_url=f"{settings.base_url}/health",
        reason=REASON,
    )


def arguments(model: str, alias: str, settings: Settings) -> tuple[str, ...]:
    """Those of ``llamacpp_server``."""
    return (
        *("--model", model, "--alias", alias),
        *("--host", settings.host, "--port", str(settings.port)),
        *("--parallel", str(settings.parallel), "--context", str(settings.context)),
        *("--threads", str(settings.threads)),
    )
