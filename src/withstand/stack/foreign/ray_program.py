"""Runs an application of Ray Serve until it is told to end. It runs in Ray's environment, without withstand."""

import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
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
    folder = tempfile.mkdtemp(prefix="wsr-")  # a socket's path in it may have 107 characters
    try:
        _serve(told, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _leave(number: int, _frame: object) -> None:
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


def _serve(told: Mapping[str, Any], folder: str) -> None:
    import ray  # noqa: PLC0415  there is none where this file is only looked at
    from ray import serve  # noqa: PLC0415

    is_own = told["address"] == "local"
    if is_own:
        ray.init(
            address="local",
            num_cpus=max(_CPUS_MIN, os.cpu_count() or 1),
            include_dashboard=False,
            object_store_memory=_OBJECTS_BYTES,
            _node_ip_address=told["host"],
            _temp_dir=folder,
        )
    else:
        ray.init(address=told["address"])
    name = told["application"]["name"]
    try:
        serve.start(http_options={"host": told["host"], "port": told["port"]})
        module, _, builder = told["application"]["import_path"].partition(":")
        built = getattr(importlib.import_module(module), builder)(told["application"]["args"])
        serve.run(built, name=name, route_prefix=told["application"]["route_prefix"])
        while True:
            signal.pause()
    finally:
        if is_own:
            serve.shutdown()
        else:
            serve.delete(name)  # the cluster is not ours
        ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1:])
