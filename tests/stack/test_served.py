"""A user's own server is there inside its block; it and all that it has started is gone after, whatever happens."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from withstand.errors import EngineError, SpecError
from withstand.spec import Serve
from withstand.stack import served

SERVER = """
import http.server, os, pathlib, subprocess, sys
apart = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
beside = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path(sys.argv[2]).write_text(f"{os.getpid()} {apart.pid} {beside.pid}")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/v1/models" else 404)
        self.end_headers()
    def log_message(self, *args): pass
"""
SERVES = 'http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()\n'
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
OURS = """
import sys, time
from pathlib import Path
from withstand.spec import Serve
from withstand.stack import served
port, log, *argv = sys.argv[1:]
with served(Serve(argv=tuple(argv), stop_s=0.3), f"http://127.0.0.1:{port}", lambda *_: None, Path(log)):
    print("up", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def argv(tmp_path: Path, port: int) -> Callable[[str], tuple[str, ...]]:
    return lambda code: (sys.executable, "-c", code, str(port), str(tmp_path / "pids"))


@contextlib.contextmanager
def up(argv: tuple[str, ...], port: int, tmp_path: Path, **fields: float) -> Iterator[None]:
    serve = Serve(argv=argv, **{"stop_s": 0.3, **fields})
    with served(serve, f"http://127.0.0.1:{port}", lambda *_: None, tmp_path / "log"):
        yield


def pids(tmp_path: Path) -> list[int]:
    return [int(pid) for pid in (tmp_path / "pids").read_text().split()]


@pytest.mark.parametrize("before", ["", STUBBORN])
def test_what_it_started_is_gone_with_it(
    tmp_path: Path, port: int, argv: Callable[[str], tuple[str, ...]], gone: Callable[..., bool], before: str
) -> None:
    with up(argv(before + SERVER + SERVES), port, tmp_path):
        assert len(pids(tmp_path)) == 3
    assert all(gone(pid, port, within_s=0.5) for pid in pids(tmp_path))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["while it starts", "up"])
def test_it_is_gone_when_we_are_killed(
    tmp_path: Path,
    port: int,
    argv: Callable[[str], tuple[str, ...]],
    gone: Callable[..., bool],
    number: signal.Signals,
    moment: str,
) -> None:
    code = SERVER + (SERVES if moment == "up" else "import time; time.sleep(60)\n")
    command = [sys.executable, "-c", OURS, str(port), str(tmp_path / "log"), *argv(code)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as ours:
        until = time.monotonic() + 30
        while not (tmp_path / "pids").exists() or not (tmp_path / "pids").read_text():
            assert time.monotonic() < until
            time.sleep(0.01)
        if moment == "up":
            assert ours.stdout is not None
            assert ours.stdout.readline() == "up\n"
        ours.send_signal(number)
    assert all(gone(pid, port) for pid in pids(tmp_path))


def test_nothing_is_started_where_somebody_listens(
    tmp_path: Path, port: int, argv: Callable[[str], tuple[str, ...]]
) -> None:
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(EngineError, match=rf"Port {port} of 127.0.0.1 is taken by .+; target\.serve starts"),
        up(argv(SERVER + SERVES), port, tmp_path),
    ):
        pass
    assert not (tmp_path / "pids").exists()


def test_a_server_that_ends_at_its_start_is_quoted(tmp_path: Path, port: int) -> None:
    argv = (sys.executable, "-c", "print('no such model'); raise SystemExit(7)")
    with (
        pytest.raises(EngineError, match=r"ended at its start \(exit code 7\): no such model"),
        up(argv, port, tmp_path),
    ):
        pass


def test_a_command_that_is_not_there(tmp_path: Path, port: int) -> None:
    with pytest.raises(EngineError, match="/no/such/server: No such file"), up(("/no/such/server",), port, tmp_path):
        pass


def test_one_that_is_never_ready_is_ended(
    tmp_path: Path, port: int, argv: Callable[[str], tuple[str, ...]], gone: Callable[..., bool]
) -> None:
    silent = argv(SERVER + "import time; time.sleep(60)")
    with pytest.raises(EngineError, match=r"not ready within 1 s"), up(silent, port, tmp_path, ready_s=1.0):
        pass
    assert all(gone(pid, port, within_s=0.5) for pid in pids(tmp_path))


@pytest.mark.parametrize("url", [None, "https://127.0.0.1:1", "unix:/x", "http://127.0.0.1"])
def test_it_must_be_known_where_it_will_listen(tmp_path: Path, url: str | None) -> None:
    with (
        pytest.raises(SpecError, match=r"needs a target\.base_url"),
        served(Serve(argv=(os.devnull,)), url, lambda *_: None, tmp_path / "log"),
    ):
        pass
