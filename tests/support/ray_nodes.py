"""A real Ray cluster of several nodes on this machine, as a process of its own: Ray stays out of the tests' process.

Run as a script it obeys lines on its standard input (``kill NAME``, ``add NAME CLOCK_AHEAD_S``), answers each with a
line of JSON, and takes the cluster down when its standard input ends. Whatever else the machine has of Ray, running or
in variables, in the home or in ``/tmp/ray``, is not seen and not touched.
"""

import contextlib
import ctypes
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import pytest

_CLONE_NEWTIME = 0x80
_STORE_BYTES = 80 << 20
_WORKER = "withstand.load.worker"
_PATIENCE_S = 180.0
"""For whatever is sure to come, on a machine that has other things to do."""
_CLIENT_PORTS = range(24001, 32768)
"""Above those that Ray's client server takes for its own, below those that the kernel gives to whoever asks for any."""
_MARK = "WITHSTAND_NODES"
_NODES_ENV = {
    "GRPC_ENABLE_FORK_SUPPORT": "0",  # else every fifteenth server that Ray forks for a client dies (their issue 63202)
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_period_ms": "500",  # a killed node is off Ray's books in seconds
    "RAY_memory_monitor_refresh_ms": "0",  # what else fills this machine's memory is no reason to kill a worker
    "RAY_worker_niceness": "0",
}


def until(holds: Callable[[], object], what: str, within_s: float = _PATIENCE_S) -> None:
    """Wait for something that is sure to come; ``what`` is named where it does not."""
    deadline_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline_s, f"waited {within_s:g} s in vain: {what}"
        time.sleep(0.1)


@contextlib.contextmanager
def own_surroundings() -> Iterator[Path]:
    """No variable of Ray's from outside, and a home and a place for Ray's files that nobody else has; the home."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as place:
        for name in [name for name in os.environ if name.upper().startswith("RAY_")]:
            patch.delenv(name)
        home = Path(place) / "home"
        home.mkdir()
        patch.setenv("HOME", str(home))
        patch.setenv("RAY_TMPDIR", place)  # short: a socket's path has room for a hundred characters
        yield home


class RayNodes:
    """A context. The nodes' names are the hosts' in what withstand says."""

    def __init__(self, names: Sequence[str], token: str | None = None) -> None:
        """``token``: nobody is let in without it."""
        self._mark = f"{_MARK}={random.randbytes(8).hex()}"
        auth = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token} if token else {"RAY_AUTH_MODE": "disabled"}
        self._process = subprocess.Popen(
            [sys.executable, __file__, *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **_NODES_ENV, **auth, _MARK: self._mark.partition("=")[2]},
        )
        try:
            told = self._told("nodes come up")
        except BaseException:
            self.close()
            raise
        self.address: str = told["address"]
        self.client_address: str = told["client_address"]
        self.session = Path(told["session"])
        """Where Ray keeps its logs."""
        self._raylets: list[int] = told["raylets"]
        self._alive = set(names)

    def kill(self, name: str) -> None:
        """As if the machine had lost its power; the second time there is nothing to do."""
        if name in self._alive:
            self._alive.remove(name)
            self._order("kill", name)

    def add(self, name: str, clock_ahead_s: int = 0) -> None:
        """One more; with ``clock_ahead_s`` it, and all that are added later, have a monotonic clock of their own."""
        self._alive.add(name)
        self._raylets += self._order("add", name, str(clock_ahead_s))["raylets"]

    def _order(self, *words: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        return self._told(" ".join(words))

    def _told(self, what: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        told, _, _ = select.select([self._process.stdout], [], [], _PATIENCE_S)
        assert told, f"waited {_PATIENCE_S:g} s in vain for the cluster: {what}"
        line = self._process.stdout.readline()
        assert line, f"the cluster's process has ended over this: {what}; its last words are on standard error"
        return json.loads(line)

    def ours(self) -> list[int]:
        """Workers on the nodes."""
        return [p for raylet in self._raylets for p in processes_with(_WORKER, f"RAY_RAYLET_PID={raylet}")]

    def close(self) -> None:
        """No process of it is left, however it went."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.communicate(timeout=30)
        _kill_all(self._mark)
        self._process.communicate(timeout=_PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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


def _kill_all(mark: str) -> None:
    """Those that bear the mark, but us."""

    def gone() -> bool:
        pids = [pid for pid in processes_with(mark) if pid != os.getpid()]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    until(gone, "the cluster's processes end")


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


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class _Nodes:
    """What the script holds: Ray's own test cluster, and its nodes by name."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster  # noqa: PLC0415 - only this process has Ray

        self._cluster = Cluster(shutdown_at_exit=False)
        self._nodes: dict[str, Any] = {}

    def add(self, name: str, **more: Any) -> int:
        """Its raylet's process; whether it is up is another question."""
        self._nodes[name] = node = self._cluster.add_node(
            wait=False, node_name=name, num_cpus=1, object_store_memory=_STORE_BYTES, **more
        )
        return node.all_processes["raylet"][0].process.pid

    def kill(self, name: str) -> None:
        self._cluster.remove_node(self._nodes.pop(name), allow_graceful=False)

    def settle(self) -> None:
        """All that are meant to live do, and no others."""
        self._cluster.wait_for_nodes(timeout=_PATIENCE_S)

    def told(self) -> dict[str, str]:
        return {"address": self._cluster.address, "session": self._cluster.head_node.get_session_dir_path()}


def _start(names: list[str]) -> tuple[_Nodes, dict[str, Any]]:
    """The cluster, when it can be used, and what is to be known of it."""
    nodes = _Nodes()
    port = next(port for port in random.sample(_CLIENT_PORTS, 100) if not _listens(port))
    raylets = [nodes.add(names[0], include_dashboard=False, ray_client_server_port=port)]
    raylets += [nodes.add(name) for name in names[1:]]
    nodes.settle()
    until(lambda: _listens(port), "the client server listens")
    return nodes, {"raylets": raylets, "client_address": f"ray://127.0.0.1:{port}", **nodes.told()}


def _serve(names: list[str]) -> None:
    say = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # Ray prints there
    nodes, told = _start(names)
    say.write(json.dumps(told) + "\n")
    for line in sys.stdin:
        verb, name, *more = line.split()
        answer = {}
        if verb == "kill":
            nodes.kill(name)
        else:
            if more[0] != "0":
                _skew(int(more[0]))
            answer = {"raylets": [nodes.add(name)]}
        nodes.settle()
        say.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    try:
        _serve(sys.argv[1:])
    finally:
        _kill_all(f"{_MARK}={os.environ[_MARK]}")
