"""A real Ray cluster of several nodes on this machine, as a process of its own: Ray stays out of the tests' process.

Run as a script it obeys lines on its standard input (``kill NAME``, ``add NAME CLOCK_AHEAD_S``), answers each with a
line of JSON, and takes the cluster down when its standard input ends.
"""

import ctypes
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

_CLONE_NEWTIME = 0x80
_STORE_BYTES = 80 << 20
_WORKER = "withstand.load.worker"


class RayNodes:
    """A context. The nodes' names are the hosts' in what withstand says."""

    def __init__(self, names: Sequence[str], **env: str) -> None:
        """``env`` is added to the nodes' environment."""
        self._process = subprocess.Popen(
            [sys.executable, __file__, *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **env},
        )
        told = self._told()
        self.address: str = told["address"]
        self.client_address: str = told["client_address"]
        self.session = Path(told["session"])
        """Where Ray keeps its logs."""
        self._raylets: list[int] = told["raylets"]

    def kill(self, name: str) -> None:
        """As if the machine had lost its power."""
        self._order("kill", name)

    def add(self, name: str, clock_ahead_s: int = 0) -> None:
        """One more; with ``clock_ahead_s`` it, and all that are added later, have a monotonic clock of their own."""
        self._raylets += self._order("add", name, str(clock_ahead_s))["raylets"]

    def _order(self, *words: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        return self._told()

    def _told(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.communicate()
            raise RuntimeError("the cluster's process has ended; its last words are on standard error")
        return json.loads(line)

    def ours(self) -> list[int]:
        """Workers on the nodes."""
        return [p for raylet in self._raylets for p in processes_with(_WORKER, f"RAY_RAYLET_PID={raylet}")]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=30)


def processes_with(*entries: str) -> list[int]:
    """Living processes that have all of these (``NAME=VALUE``) in their environment, or among their arguments."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            told = b"\0".join((path / name).read_bytes() for name in ("environ", "cmdline"))
        except OSError:
            continue
        if set(entries) <= set(told.decode("utf-8", "replace").split("\0")):
            found.append(int(path.name))
    return found


def may_skew_clocks() -> bool:
    """Whether this machine lets us give a process another monotonic clock (a time namespace)."""
    command = ["unshare", "--time", "--monotonic", "60", "--fork", "true"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _skew(ahead_s: int) -> None:
    """Children started from now on live in a time namespace of their own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWTIME):
        raise OSError(ctypes.get_errno(), "no time namespace")
    Path("/proc/self/timens_offsets").write_text(f"monotonic {ahead_s} 0\n")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _serve(names: list[str]) -> None:
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - only this process has Ray

    cluster = Cluster()
    nodes = {}

    def add(name: str, **more: Any) -> list[int]:
        nodes[name] = cluster.add_node(node_name=name, num_cpus=1, object_store_memory=_STORE_BYTES, **more)
        return [raylet.process.pid for raylet in nodes[name].all_processes["raylet"]]

    def say(**told: Any) -> None:
        sys.__stdout__.write(json.dumps(told) + "\n")
        sys.__stdout__.flush()

    port = _free_port()
    raylets = add(names[0], include_dashboard=False, ray_client_server_port=port)
    for name in names[1:]:
        raylets += add(name)
    client_address = f"ray://127.0.0.1:{port}"
    session = cluster.head_node.get_session_dir_path()
    say(address=cluster.address, client_address=client_address, session=session, raylets=raylets)
    for line in sys.stdin:
        verb, name, *more = line.split()
        if verb == "kill":
            cluster.remove_node(nodes.pop(name), allow_graceful=False)
            cluster.wait_for_nodes()
            say()
        else:
            if more[0] != "0":
                _skew(int(more[0]))
            say(raylets=add(name))
    cluster.shutdown()


if __name__ == "__main__":
    _serve(sys.argv[1:])
