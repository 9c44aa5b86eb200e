"""Runs an application of Ray Serve until it is told to end. It runs in Ray's environment, without withstand.

On a cluster that is somebody else's it leaves a trace beside its file for as long as the application is there: should
it be killed, ``--undo`` removes the application later, and another start takes it for its own.
"""

import importlib
import json
import os
import secrets
import shutil
import signal
import socket
import sys
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

_OBJECTS_BYTES = 200 * 1024 * 1024
"""Tokens are small; Ray would take a third of the memory."""
_CPUS_MIN = 64
"""Ray counts cores to place replicas, and has more actors than a laptop has cores; they wait nearly all the time."""
_QUESTION = "/ray.rpc.NodeInfoGcsService/CheckAlive"
_KNOCK_S = 5.0
_METRICS_S = 5.0
_VLLM = "ray_vllm_"
"""What Ray makes of vLLM's own ``vllm:``."""


def main(argv: list[str]) -> None:
    """``ray_program.py FILE [--undo]``."""
    told = json.loads(Path(argv[0]).read_text("utf-8"))
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, _leave)
    if "--undo" in argv:
        _undo(told)
    elif told["address"] == "local":
        _on_its_own(told, Path(told["folder"]))
    else:
        _on_cluster(told)


def _leave(number: int, _frame: object) -> None:
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


def _on_its_own(told: Mapping[str, Any], folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # of one that was killed
    folder.mkdir(mode=0o700)
    try:
        _guard()
        import ray  # noqa: PLC0415  there is none where this file is only looked at
        from ray import serve  # noqa: PLC0415

        ray.init(
            address="local",
            num_cpus=max(_CPUS_MIN, os.cpu_count() or 1),
            include_dashboard=False,
            object_store_memory=_OBJECTS_BYTES,
            _node_ip_address=told["host"],
            _temp_dir=str(folder),
        )
        try:
            _serve(told)
        finally:
            serve.shutdown()
            ray.shutdown()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _guard() -> None:
    """Who may speak to a Ray may run programs. By itself it makes a token in the user's home, or takes that."""
    os.environ.pop("RAY_AUTH_TOKEN_PATH", None)
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def _on_cluster(told: Mapping[str, Any]) -> None:
    """The cluster is not ours; Serve on it is, where nobody had started that."""
    name, trace = told["application"]["name"], Path(told["trace"])
    with _connected(told["address"]):
        from ray import serve  # noqa: PLC0415

        found = serve.status()
        if name in found.applications and not trace.exists():
            sys.exit(f"error: The cluster has an application {name!r} already; give the stack another name.")
        if not trace.exists():
            trace.write_text(json.dumps({"was_serving": bool(found.applications or found.proxies)}), "utf-8")
        try:
            _serve(told)
        finally:
            _remove(name, trace)


def _undo(told: Mapping[str, Any]) -> None:
    """What one that was killed has left."""
    if not _is_gone(told["address"]):
        with _connected(told["address"]):
            _remove(told["application"]["name"], Path(told["trace"]))


def _remove(name: str, trace: Path) -> None:
    from ray import serve  # noqa: PLC0415

    if name in serve.status().applications:
        serve.delete(name)
    if not json.loads(trace.read_text("utf-8"))["was_serving"] and not serve.status().applications:
        serve.shutdown()
    trace.unlink()


@contextmanager
def _connected(address: str) -> Iterator[None]:
    if _is_gone(address):
        sys.exit(f"error: No Ray listens at {address}; start it, or correct address in [ray].")
    _settle_token(address)
    import ray  # noqa: PLC0415  which decides about tokens while it is imported

    ray.init(address=address, log_to_driver=False)
    try:
        yield
    finally:
        ray.shutdown()


def _is_gone(address: str) -> bool:
    """Whether nobody listens there; False where that cannot be told."""
    host, _, port = address.rpartition(":")
    try:
        if port.isdecimal():
            socket.create_connection((host, int(port)), timeout=_KNOCK_S).close()
    except ConnectionRefusedError:
        return True
    return False


def _settle_token(address: str) -> None:
    """Ray by itself shows none where an address is given. Whoever shows one that is not wanted gets no workers."""
    given = bool(os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"))
    wanted = _wants_token(address)
    if wanted and not given and os.environ.get("RAY_AUTH_MODE") != "token":
        sys.exit(
            f"error: The Ray at {address} wants its token; say where it is: "
            'token = { from_file = "PATH" }, or { from_env = "NAME" }, in [ray].'
        )
    if wanted is False:
        os.environ["RAY_AUTH_MODE"] = "disabled"
    elif given:
        os.environ["RAY_AUTH_MODE"] = "token"


def _wants_token(address: str) -> bool | None:
    """Whether a question without any is answered; None = that cannot be told."""
    import grpc  # noqa: PLC0415  comes with Ray

    if not address.rpartition(":")[2].isdecimal():
        return None
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            channel.unary_unary(_QUESTION)(b"", timeout=_KNOCK_S)
        except grpc.RpcError as e:
            return True if e.code() is grpc.StatusCode.UNAUTHENTICATED else None
    return False


def _serve(told: Mapping[str, Any]) -> None:
    from ray import serve  # noqa: PLC0415
    from ray.serve.context import _get_global_client  # noqa: PLC0415  nothing public tells where it listens

    serve.start(http_options={"host": told["host"], "port": told["port"]})
    if (port := _get_global_client().http_config.port) != told["port"]:
        sys.exit(f"error: Serve on that cluster listens on port {port} already; say so: port = {port} in [ray].")
    application = told["application"]
    module, _, builder = application["import_path"].partition(":")
    built = getattr(importlib.import_module(module), builder)(application["args"])
    serve.run(built, name=application["name"], route_prefix=application["route_prefix"])
    # Ray's own proxy says 200 while the engine still loads its weights.
    _Told.models = told["models"]
    Thread(target=ThreadingHTTPServer((told["host"], told["ready_port"]), _Told).serve_forever, daemon=True).start()
    while True:
        signal.pause()


class _Told(BaseHTTPRequestHandler):
    """Answers 200: all that was asked for runs. ``/metrics`` is what all nodes say of our models."""

    models: tuple[str, ...] = ()

    def do_GET(self) -> None:
        body = "".join(_metrics(self.models)).encode() if self.path == "/metrics" else b""
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: it is asked several times a second."""


def _metrics(models: Iterable[str]) -> Iterator[str]:
    import ray  # noqa: PLC0415

    for node in ray.nodes():
        if node["Alive"]:
            url = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
            try:
                with urllib.request.urlopen(url, timeout=_METRICS_S) as answer:
                    yield from _by_own_names(answer.read().decode("utf-8", "replace"), models)
            except OSError:  # it has just gone, or tells none
                continue


def _by_own_names(text: str, models: Iterable[str]) -> Iterator[str]:
    """As vLLM calls them. Sums of histograms are left out: Ray makes them up from the middles of buckets."""
    of = tuple(f'model_name="{model}"' for model in models)
    for line in text.splitlines(keepends=True):
        name = line.partition("{")[0]
        if name.startswith(_VLLM) and not name.endswith("_sum") and any(each in line for each in of):
            yield f"vllm:{line.removeprefix(_VLLM)}"


if __name__ == "__main__":
    main(sys.argv[1:])
