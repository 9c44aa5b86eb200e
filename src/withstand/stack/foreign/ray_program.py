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
import time
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
_ANSWER_S = 20.0
"""What a cluster may take to answer whether it is there."""
_METRICS_S = 5.0
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Nodes are asked by their own address, past any proxy of the environment."""
_LOOK_S = 2.0
_LOST_S = 60.0
"""What another node may take to accept what a dead one ran; it then loads for as long as it likes."""
_KILLED_S = 20.0
"""What Serve may take to see that replicas were killed; less than what this program has to end."""
_REPLICA = "SERVE_REPLICA::"
_CURE = 'token = { from_file = "PATH" }, or { from_env = "NAME" }, in [ray]'
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
            while True:
                signal.pause()
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
            _watch(name)
        finally:
            _remove(told)


def _undo(told: Mapping[str, Any]) -> None:
    """What one that was killed has left."""
    if not _is_gone(told["address"]):
        with _connected(told["address"]):
            _remove(told)


def _remove(told: Mapping[str, Any]) -> None:
    from ray import serve  # noqa: PLC0415

    name, trace = told["application"]["name"], Path(told["trace"])
    if name in serve.status().applications:
        _delete(name, told["grace_s"])
    if not json.loads(trace.read_text("utf-8"))["was_serving"] and not serve.status().applications:
        serve.shutdown()
    trace.unlink()


def _delete(name: str, grace_s: float) -> None:
    """Serve lets replicas end their longest stream, and waits as long for one that no node has taken."""
    from ray import serve  # noqa: PLC0415

    serve.delete(name, _blocking=False)
    kill_s = time.monotonic() + grace_s
    while name in serve.status().applications:
        late_s = time.monotonic() - kill_s
        if late_s > _KILLED_S:
            sys.exit(f"error: Ray does not remove the application {name!r}; withstand down tries again.")
        if late_s > 0:
            _kill_replicas(name)
        time.sleep(_LOOK_S / 4)


def _kill_replicas(name: str) -> None:
    import ray  # noqa: PLC0415

    for actor in _replicas(f"{name}#"):
        ray.kill(actor)


def _replicas(prefix: str) -> list[Any]:
    import ray  # noqa: PLC0415

    found = []
    for each in ray.util.list_named_actors(all_namespaces=True):
        if each["name"].startswith(_REPLICA + prefix):
            try:
                found.append(ray.get_actor(each["name"], each["namespace"]))
            except ValueError:  # it has just ended
                continue
    return found


def _watch(name: str) -> None:
    """Until a node dies and no other takes what it ran: Serve would let requests wait for ever."""
    import ray  # noqa: PLC0415

    had = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
    whole_s = time.monotonic()
    while True:
        gone = [node["NodeManagerAddress"] for node in ray.nodes() if node["NodeID"] in had and not node["Alive"]]
        if not gone or _is_taken(name):
            whole_s = time.monotonic()
        elif time.monotonic() - whole_s > _LOST_S:
            sys.exit(
                f"error: The cluster's node {', '.join(gone)} is dead, and no other has room for what it ran; "
                "start another, and withstand up again."
            )
        time.sleep(_LOOK_S)


def _is_taken(name: str) -> bool:
    """Whether of each deployment a replica runs, or is on a node at least."""
    import ray  # noqa: PLC0415
    from ray import serve  # noqa: PLC0415

    application = serve.status().applications.get(name)
    for deployment, told in application.deployments.items() if application else ():
        if told.replica_states.get("STARTING") and not told.replica_states.get("RUNNING"):
            asked = [actor.__ray_ready__.remote() for actor in _replicas(f"{name}#{deployment}#")]
            if not asked or not ray.wait(asked, timeout=_KNOCK_S)[0]:
                return False
    return True


@contextmanager
def _connected(address: str) -> Iterator[None]:
    _settle_token(address)
    import ray  # noqa: PLC0415  which decides about tokens while it is imported

    try:
        ray.init(address=address, log_to_driver=False)
    except (ConnectionError, RuntimeError, ray.exceptions.RayError) as e:
        why = next(iter(str(e).splitlines()), "")[:150]
        sys.exit(f"error: No Ray at {address} takes this machine in; correct address or token in [ray] ({why}).")
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
    except OSError:  # it may be there all the same
        return False
    return False


def _settle_token(address: str) -> None:
    """Ray by itself shows none where an address is given. Whoever shows one that is not wanted gets no workers."""
    token = _token()
    if not address.rpartition(":")[2].isdecimal() or os.environ.get("RAY_USE_TLS") == "1":
        if token:
            os.environ["RAY_AUTH_MODE"] = "token"
    elif _lets_in(address, ""):
        os.environ["RAY_AUTH_MODE"] = "disabled"
    elif not token:
        sys.exit(f"error: The Ray at {address} wants its token; say where it is: {_CURE}.")
    elif not (token.isascii() and token.isprintable() and _lets_in(address, token)):  # gRPC sends no other
        sys.exit(f"error: The Ray at {address} has another token than the one shown; correct it: {_CURE}.")
    else:
        os.environ["RAY_AUTH_MODE"] = "token"


def _token() -> str:
    """What Ray would show, as it looks for it; empty where there is none."""
    if told := os.environ.get("RAY_AUTH_TOKEN"):
        return told.strip()
    path = os.environ.get("RAY_AUTH_TOKEN_PATH")
    if not path and os.environ.get("RAY_AUTH_MODE") != "token":
        return ""
    try:
        return Path(path or Path.home() / ".ray" / "auth_token").read_text("utf-8").strip()
    except OSError:
        return ""


def _lets_in(address: str, token: str) -> bool:
    """Whether who shows this token, or none, is answered. Ray itself would ask for minutes."""
    import grpc  # noqa: PLC0415  comes with Ray

    shown = [("authorization", f"Bearer {token}")] if token else []
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            channel.unary_unary(_QUESTION)(b"", timeout=_ANSWER_S, metadata=shown)
        except grpc.RpcError as e:
            if e.code() is not grpc.StatusCode.UNAUTHENTICATED:
                sys.exit(
                    f"error: No Ray answers at {address} ({e.code().name}); start it, or correct address in [ray]."
                )
            return False
    return True


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
                with _DIRECT.open(url, timeout=_METRICS_S) as answer:
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
