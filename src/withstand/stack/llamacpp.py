"""The embedded engine: llama.cpp's own server (PyPI ``xllamacpp``) with a small model, in a process of ours."""

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import msgspec

from withstand import clock
from withstand.errors import EngineError
from withstand.stack import model
from withstand.stack.progress import Progress
from withstand.stack.service import Service, free_port, listens

PARALLEL = 16
CONTEXT = 32_768
_MEMORY_BYTES = 1_500 << 20
_READY_S = 60.0
_THREADS_MAX = 8
# A waiting thread of OpenMP spins; beside a busy neighbour (we are one) that collapses: 62 → 0.7 tokens/s.
_ENV = {"GOMP_SPINCOUNT": "1000"}


class EngineInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An engine that is up."""

    base_url: str
    model: str
    name: str
    model_file: str
    sha256: str
    """Of the file that was fetched; ``own file`` for the user's."""
    threads: int
    context: int
    """Tokens over all slots."""
    pid: int
    ready_s: float


@contextlib.contextmanager
def embedded_engine(progress: Progress, log: Path, *, parallel: int = PARALLEL) -> Iterator[EngineInfo]:
    """The engine on a free port, ready, until the context ends.

    Raises:
        EngineError: extra, model, memory or port are missing, or it does not come up.
    """
    _check_extra()
    _check_memory()
    path = model.model_file(progress)
    port, threads = free_port(), min(_cores(), _THREADS_MAX)
    module = "withstand.stack.llamacpp_server"
    argv = [sys.executable, "-P", "-m", module, str(path), str(port), str(parallel), str(CONTEXT), str(threads)]
    began_ns = clock.now_ns()
    progress("start the engine", 0, None)
    with Service("The embedded engine", argv, env=_ENV, log=log) as service:
        service.wait_until_healthy(port, "/health", _READY_S)
        progress("start the engine", 1, 1)
        yield EngineInfo(
            base_url=f"http://127.0.0.1:{port}",
            model=model.NAME,
            name=f"llama.cpp (xllamacpp {metadata.version('xllamacpp')})",
            model_file=str(path),
            sha256="own file" if os.environ.get("WITHSTAND_MODEL") else model.SHA256,
            threads=threads,
            context=CONTEXT,
            pid=service.pid,
            ready_s=(clock.now_ns() - began_ns) / 1e9,
        )
    if listens(port):
        raise EngineError(f"The embedded engine's port {port} is still in use after its end.")


def _check_extra() -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        raise EngineError(
            "Without --base-url the embedded engine is measured, which needs: pip install 'withstand[engine]'."
        )


def _check_memory() -> None:
    available = _available_bytes()
    if available is not None and available < _MEMORY_BYTES:
        raise EngineError(
            f"The embedded engine needs {_MEMORY_BYTES >> 20} MB of memory; {available >> 20} MB are available. "
            "End something, or measure another endpoint by --base-url."
        )


def _available_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    kilobytes = next((line.split()[1] for line in lines if line.startswith("MemAvailable")), None)
    return int(kilobytes) * 1024 if kilobytes else None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
