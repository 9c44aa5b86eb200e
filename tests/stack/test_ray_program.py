"""The program that runs on Ray, with a stand-in for Ray: it finds the environment's own, and ends it when told to."""

import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from withstand.stack import ray
from withstand.stack.ports import free_port

RAY = """
import os
from types import SimpleNamespace as Told
exceptions = Told(RayError=ValueError)
util = Told(list_named_actors=lambda all_namespaces: [])
def init(address, **told):
    print("init", address, os.environ.get("RAY_AUTH_MODE"), len(os.environ.get("RAY_AUTH_TOKEN", "")), flush=True)
def shutdown(): print("gone", flush=True)
def nodes():
    return [
        {"Alive": True, "NodeID": port, "NodeManagerAddress": "127.0.0.1", "MetricsExportPort": port}
        for port in (int(os.environ["METRICS_PORT"]), 1)
    ]
"""
SERVE = """
import os
from types import SimpleNamespace as Told
http_config = Told(port=int(os.environ["SERVE_PORT"]))
def there(): return os.path.exists("app")
def status(): return Told(applications={"chat": 1} if there() else {}, proxies={"node": 1})
def start(http_options): print("port", http_options["port"])
def run(app, name, route_prefix): open("app", "w").close(); print("runs", name, app, flush=True)
def shutdown(): print("no more")
def delete(name, _blocking): os.unlink("app"); print("deleted", name)
"""
GRPC = """
import os
from types import SimpleNamespace as Told
StatusCode = Told(UNAUTHENTICATED=Told(name="UNAUTHENTICATED"), UNAVAILABLE=Told(name="UNAVAILABLE"))
class RpcError(Exception):
    def code(self): return self.args[0]
class insecure_channel:
    def __init__(self, address, options): pass
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def unary_unary(self, name): return self.ask
    def ask(self, body, timeout, metadata):
        if "WANTED" not in os.environ: raise RpcError(StatusCode.UNAVAILABLE)
        wanted = os.environ["WANTED"]
        if wanted and metadata != [("authorization", "Bearer " + wanted)]: raise RpcError(StatusCode.UNAUTHENTICATED)
"""
STAND_IN = {
    "ray/__init__.py": RAY,
    "ray/serve/__init__.py": SERVE,
    "ray/serve/context.py": "from ray import serve\ndef _get_global_client(): return serve\n",
    "grpc.py": GRPC,
    "app.py": "def build(told): return told['models']\n",
}
SAID = """# HELP ray_vllm_num_requests_running x
ray_vllm_num_requests_running{WorkerId="a",model_name="m"} 2.0
ray_vllm_num_requests_running{WorkerId="b",model_name="another"} 9.0
ray_vllm_request_queue_time_seconds_sum{model_name="m"} 0.45
ray_vllm_request_queue_time_seconds_count{model_name="m"} 3.0
ray_serve_num_http_requests_total{route="/"} 3.0
"""


class Program:
    """One program, its stand-in for Ray, and the cluster's state, which is a file."""

    def __init__(self, folder: Path, address: str, metrics_port: int) -> None:
        for name, text in STAND_IN.items():
            (folder / name).parent.mkdir(exist_ok=True, parents=True)
            (folder / name).write_text(text)
        self.folder = folder
        self.app, self.trace, self.files = folder / "app", folder / "trace", folder / "ray-files"
        application = {"name": "chat", "route_prefix": "/", "import_path": "app:build", "args": {"models": 2}}
        self.ready_port = free_port()
        self._told: dict[str, Any] = {
            "address": address,
            "host": "127.0.0.1",
            "port": 1,
            "ready_port": self.ready_port,
            "folder": str(self.files),
            "trace": str(self.trace),
            "application": application,
            "models": ["m"],
            "grace_s": 0.0,
        }
        self._env = {"PYTHONPATH": str(folder), "SERVE_PORT": "1", "METRICS_PORT": str(metrics_port)}

    def start(self, *more: str, **env: str) -> "subprocess.Popen[str]":
        (self.folder / "told.json").write_text(json.dumps(self._told))
        argv = [sys.executable, str(ray._PROGRAM), str(self.folder / "told.json"), *more]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        return subprocess.Popen(
            argv,
            env=environment | self._env | env,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def ended(self, number: signal.Signals = signal.SIGTERM) -> list[str]:
        """All that one says that runs, and then hears this signal."""
        with self.start() as program:
            assert program.stdout
            lines = []
            for line in program.stdout:
                lines.append(line.strip())
                if line.startswith("runs"):
                    program.send_signal(number)
        assert program.returncode == (-number if number == signal.SIGKILL else 128 + number)
        return lines

    def said(self, *more: str, **env: str) -> tuple[int, str]:
        """How one ends by itself."""
        with self.start(*more, **env) as program:
            assert program.stdout
            text = program.stdout.read()
        return program.returncode, text.strip()


@pytest.fixture
def metrics_port() -> int:
    class Node(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(SAID.encode())

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Node)
    Thread(target=server.serve_forever, daemon=True).start()
    return int(server.server_address[1])


def test_a_ray_of_its_own_has_a_token_of_its_own_and_ends_with_it(tmp_path: Path, metrics_port: int) -> None:
    program = Program(tmp_path, "local", metrics_port)
    assert program.ended() == ["init local token 64", "port 1", "runs chat 2", "no more", "gone"]
    assert not program.files.exists()


def test_on_a_cluster_only_the_application_ends(tmp_path: Path, metrics_port: int) -> None:
    program = Program(tmp_path, "auto", metrics_port)
    assert program.ended() == ["init auto None 0", "port 1", "runs chat 2", "deleted chat", "gone"]
    assert not program.trace.exists()


def test_what_one_that_was_killed_has_left_is_its_own(tmp_path: Path, metrics_port: int) -> None:
    program = Program(tmp_path, "auto", metrics_port)
    program.ended(signal.SIGKILL)
    assert program.app.exists()
    assert program.ended()[-2:] == ["deleted chat", "gone"]
    program.ended(signal.SIGKILL)
    assert program.said("--undo") == (0, "init auto None 0\ndeleted chat\ngone")
    assert not program.app.exists()
    assert not program.trace.exists()


def test_another_ones_application_stays(tmp_path: Path, metrics_port: int) -> None:
    program = Program(tmp_path, "auto", metrics_port)
    program.app.touch()
    code, said = program.said()
    assert code == 1
    assert "an application 'chat' already; give the stack another name" in said
    assert program.app.exists()


def test_a_cluster_that_is_gone_has_nothing_left(tmp_path: Path, metrics_port: int) -> None:
    assert Program(tmp_path, f"127.0.0.1:{free_port()}", metrics_port).said("--undo")[0] == 0


@pytest.fixture
def address() -> Iterator[str]:
    """Somebody listens there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_cluster_that_wants_a_token_is_shown_that_of_the_stack(
    tmp_path: Path, metrics_port: int, address: str
) -> None:
    program = Program(tmp_path, address, metrics_port)
    code, said = program.said(WANTED="abc")
    assert code == 1
    assert said == (
        f"error: The Ray at {address} wants its token; say where it is: "
        'token = { from_file = "PATH" }, or { from_env = "NAME" }, in [ray].'
    )
    program.trace.write_text('{"was_serving": true}')
    assert program.said("--undo", WANTED="abc", RAY_AUTH_TOKEN="abc")[1].startswith(f"init {address} token 3\n")


@pytest.mark.parametrize(("wanted", "shown"), [("abc", "abd"), ("a\nb", "a\nb"), ("caf\u00e9", "caf\u00e9")])
def test_another_token_than_the_clusters_is_told_of_and_not_said(
    tmp_path: Path, metrics_port: int, address: str, wanted: str, shown: str
) -> None:
    program = Program(tmp_path, address, metrics_port)
    code, said = program.said(WANTED=wanted, RAY_AUTH_TOKEN=shown)
    assert code == 1
    assert said == (
        f"error: The Ray at {address} has another token than the one shown; correct it: "
        'token = { from_file = "PATH" }, or { from_env = "NAME" }, in [ray].'
    )


def test_a_cluster_that_wants_no_token_is_shown_none(tmp_path: Path, metrics_port: int, address: str) -> None:
    program = Program(tmp_path, address, metrics_port)
    program.trace.write_text('{"was_serving": true}')
    assert program.said("--undo", WANTED="", RAY_AUTH_TOKEN="abc")[1].startswith(f"init {address} disabled 3\n")


def test_a_cluster_that_is_not_there_is_told_of(tmp_path: Path, metrics_port: int) -> None:
    address = f"127.0.0.1:{free_port()}"
    code, said = Program(tmp_path, address, metrics_port).said()
    assert (code, said) == (
        1,
        f"error: No Ray answers at {address} (UNAVAILABLE); start it, or correct address in [ray].",
    )


def test_serve_that_listens_elsewhere_is_told_of(tmp_path: Path, metrics_port: int) -> None:
    program = Program(tmp_path, "auto", metrics_port)
    code, said = program.said(SERVE_PORT="8000")
    assert code == 1
    assert "port = 8000 in [ray]" in said
    assert not program.trace.exists()


def test_what_nodes_say_of_the_models_goes_by_vllms_own_names(tmp_path: Path, metrics_port: int) -> None:
    program = Program(tmp_path, "local", metrics_port)
    with program.start() as running:
        assert running.stdout
        while not running.stdout.readline().startswith("runs"):
            pass
        url = f"http://127.0.0.1:{program.ready_port}/metrics"
        for _ in range(1000):
            try:
                with urllib.request.urlopen(url, timeout=60) as answer:
                    text = answer.read().decode()
                break
            except OSError:
                continue
        running.terminate()
    assert text == (
        'vllm:num_requests_running{WorkerId="a",model_name="m"} 2.0\n'
        'vllm:request_queue_time_seconds_count{model_name="m"} 3.0\n'
    )
