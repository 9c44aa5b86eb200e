"""Fakes for the stack's tests: a tiny model in a tiny wheel, and a service that is a few lines of Python."""

import hashlib
import os
import socket
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from withstand.stack.ports import free_port
from withstand.stack.service import Service
from withstand.stack.standing import standings
from withstand.stack.taking_down import take_down
from withstand.stack.wheel import Pinned

HEALTHY = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
"""


class Recorder(list[tuple[str, int, int | None]]):
    """A Progress that remembers; ``steps`` are the distinct ones, in order."""

    def __call__(self, step: str, done: int, total: int | None, /) -> None:
        assert total is None or 0 <= done <= total
        self.append((step, done, total))

    @property
    def steps(self) -> list[str]:
        return list(dict.fromkeys(step for step, _, _ in self))


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where stacks are told of; none of them is left at the end."""
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path / "state"))
    yield tmp_path / "state"
    for standing in standings():
        assert not take_down(standing)


@pytest.fixture
def progress() -> Recorder:
    return Recorder()


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def make_service(tmp_path: Path, port: int) -> Callable[..., Service]:
    """A service that runs this Python code; HEALTHY goes before it unless told otherwise."""

    def make(code: str = "server.serve_forever()", *, before: str = HEALTHY, **fields: object) -> Service:
        defaults = {
            "name": "The fake engine",
            "argv": (sys.executable, "-c", before + code, str(port)),
            "log_file": tmp_path / "engine.log",
            "health_url": f"http://127.0.0.1:{port}/health",
        }
        return Service(**{**defaults, **fields})

    return make


@pytest.fixture
def make_wheel() -> Callable[..., Pinned]:
    """A wheel ``tiny-model`` in a folder, and what we would know of it."""

    def make(folder: Path, content: bytes = b"GGUF tiny", known_content: bytes | None = None) -> Pinned:
        folder.mkdir(exist_ok=True)
        pinned = Pinned(
            title="Tiny",
            licence="Apache-2.0",
            requirement="tiny-model==1.0",
            wheel="tiny_model-1.0-py3-none-any.whl",
            wheel_bytes=1000,
            member="tiny_model/Tiny.Q4_1.gguf",
            sha256=hashlib.sha256(content if known_content is None else known_content).hexdigest(),
        )
        with zipfile.ZipFile(folder / pinned.wheel, "w") as archive:
            archive.writestr(pinned.member, content)
            info = "tiny_model-1.0.dist-info"
            archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", "")
        return pinned

    return make


@pytest.fixture
def only_index(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """From now on, pip sees this folder and nothing else."""

    def use(folder: Path) -> None:
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(folder))

    return use


def is_alive(pid: int) -> bool:
    """Not gone, and no zombie that only waits to be reaped."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture
def gone() -> Callable[..., bool]:
    """Whether a process and its port are gone within some seconds."""

    def wait(pid: int, port: int, within_s: float = 5.0) -> bool:
        end = time.monotonic() + within_s
        while is_alive(pid) or is_open(port):
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    return wait
