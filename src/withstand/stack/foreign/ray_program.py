"""Runs an application of Ray Serve until it is told to end. It runs in Ray's environment, without withstand."""

import importlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

_OBJECTS_BYTES = 200 * 1024 * 1024
"""Tokens are small; Ray would take a third of the memory."""
_CPUS_MIN = 64
"""Ray counts cores to place replicas, and has more actors than a laptop has cores; they wait nearly all the time."""


def main(argv: list[str]) -> None:
    """``ray_program.py FILE``."""
    told = json.loads(Path(argv[0]).read_text("utf-8"))
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, _leave)
    if told["address"] != "local":
        _on_cluster(told)
        return
    folder = Path(told["folder"])
    shutil.rmtree(folder, ignore_errors=True)  # of one that was killed
    folder.mkdir(mode=0o700)
    try:
        _on_its_own(told, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _leave(number: int, _frame: object) -> None:
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


def _on_its_own(told: Mapping[str, Any], folder: Path) -> None:
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


def _on_cluster(told: Mapping[str, Any]) -> None:
    """The cluster is not ours; Serve on it is, where nobody had started that."""
    import ray  # noqa: PLC0415
    from ray import serve  # noqa: PLC0415

    ray.init(address=told["address"])
    name = told["application"]["name"]
    found = serve.status()
    if name in found.applications:
        sys.exit(f"error: The cluster has an application {name!r} already; give the stack another name.")
    was_serving = bool(found.applications or found.proxies)
    try:
        _serve(told)
    finally:
        serve.delete(name)
        if not was_serving and not serve.status().applications:
            serve.shutdown()
        ray.shutdown()


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
    Thread(target=HTTPServer((told["host"], told["ready_port"]), _Ready).serve_forever, daemon=True).start()
    while True:
        signal.pause()


class _Ready(BaseHTTPRequestHandler):
    """Answers 200: all that was asked for runs."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: it is asked several times a second."""


if __name__ == "__main__":
    main(sys.argv[1:])
