"""The embedded engine: a real small model on this machine for the length of a ``with`` block."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from withstand.stack import llamacpp
from withstand.stack.machine import require_memory, usable_cores
from withstand.stack.model import ready_model
from withstand.stack.ports import HOST, free_port
from withstand.stack.progress import Progress
from withstand.stack.service import running

_THREADS_MAX = 8
_STARTING = "Starting the engine"


class EngineInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An engine that is up. ``context`` is what one request may use, prompt and answer together."""

    base_url: str
    model: str
    name: str
    model_file: Path
    sha256: str
    threads: int
    parallel: int
    context: int
    pid: int
    ready_s: float


@contextmanager
def embedded_engine(
    progress: Progress, log_file: Path, parallel: int = 16, *, port: int | None = None, context: int = 32_768
) -> Iterator[EngineInfo]:
    """The engine, healthy inside the block; ended after it, and when this process dies in whatever way.

    ``context`` is divided among ``parallel`` requests; more than those wait for their turn.

    Raises:
        EngineError: not installed, no model, no memory, no port, or it does not come up.
        UsageError: the model that the user names is none.
    """
    assert parallel >= 1
    name = llamacpp.name()
    model = ready_model(progress)
    settings = llamacpp.Settings(
        host=HOST,
        port=free_port(port),
        parallel=parallel,
        context=context,
        threads=min(usable_cores(), _THREADS_MAX),
    )
    require_memory(llamacpp.memory_bytes(model, settings), "The embedded engine")
    progress(_STARTING, 0, None)
    with running(llamacpp.service(model, settings, log_file)) as engine:
        progress(_STARTING, 1, 1)
        yield EngineInfo(
            base_url=settings.base_url,
            model=model.name,
            name=name,
            model_file=model.path,
            sha256=model.sha256,
            threads=settings.threads,
            parallel=parallel,
            context=context // parallel,
            pid=engine.pid,
            ready_s=engine.ready_s,
        )
