"""The Ray cluster that we attach to, or start on this machine where none runs. Every refusal is one sentence.

Only the bridge imports this: Ray's threads and its chatter stay there.
"""

import os
import re
import socket
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from withstand.errors import MeasureError
from withstand.load.address import why
from withstand.load.ray.hand import Hand
from withstand.wire.reply import one_line

_NEW = "local"
_CLIENT = "ray://"
_CLIENT_PORT = 10001
_PROBE_S = 5.0
_STORE_BYTES = 128 << 20
_TOLD_CHARS_MAX = 300
_OTHER_VERSION = re.compile("versions? (mismatch|differ)|incompatible", re.IGNORECASE)
_NO_TOKEN = re.compile("timeout|timed out|failed to connect|authenti|authoriz", re.IGNORECASE)
"""Whoever shows no token, or a wrong one, is told no more than this."""
_CURE = "Set RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH, to that of its nodes (RAY_AUTH_MODE=disabled shows none)"
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}


class Node(NamedTuple):
    """A machine of the cluster that can take a worker."""

    id: str
    host: str


class Cluster:
    """Attached from the start to ``close``."""

    def __init__(self, address: str, cpus: int) -> None:
        """``address`` as Ray spells it; empty = the cluster that runs here, else a new one with ``cpus``.

        ``local`` = a new one in any case.

        Raises:
            MeasureError: it is not there, or does not want us.
        """
        self._hand = ray.remote(Hand)
        try:
            self.started = _connect(address or os.environ.get("RAY_ADDRESS", ""), cpus)
        except (ConnectionError, RuntimeError, ValueError, ImportError, RayError) as e:
            raise MeasureError(_refusal(address, str(e))) from None

    def nodes(self) -> list[Node]:
        """Those that live and offer a core, in a settled order. Several on one host are told apart."""
        alive = [n for n in ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0) >= 1]
        names = [n["NodeName"] for n in alive]
        return sorted((Node(n["NodeID"], _host(n, names)) for n in alive), key=lambda node: (node.host, node.id))

    def hand(self, node: Node) -> Any:
        """A new actor on that node, with a core to itself by Ray's books."""
        strategy = NodeAffinitySchedulingStrategy(node.id, soft=False)
        return self._hand.options(num_cpus=1, max_restarts=0, scheduling_strategy=strategy).remote()

    def close(self) -> None:
        """Take leave; a cluster that we started ends with us."""
        ray.shutdown()


def _host(node: dict[str, Any], names: list[str]) -> str:
    name: str = node["NodeName"]
    return name if names.count(name) == 1 else f"{name} ({node['NodeID'][:6]})"


def _connect(address: str, cpus: int) -> bool:
    """Whether a new one was started."""
    if address == _NEW:
        _start_local(cpus)
        return True
    if address:
        _probe(address)
        ray.init(address, **_QUIET)
        return False
    try:
        ray.init("auto", **_QUIET)
    except ConnectionError:
        _start_local(cpus)
        return True
    return False


def _start_local(cpus: int) -> None:
    """A cluster of this machine alone, for as long as we live. It tells nobody, and does not make us wait."""
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")
    ray.init(_NEW, num_cpus=cpus, include_dashboard=False, object_store_memory=_STORE_BYTES, **_QUIET)


def _probe(address: str) -> None:
    """Ray takes half a minute to find out that nobody listens."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        port = parts.port or (_CLIENT_PORT if address.startswith(_CLIENT) else None)
        if parts.hostname and port:
            socket.create_connection((parts.hostname, port), _PROBE_S).close()
    except ValueError as e:
        raise MeasureError(f"--fleet: {address!r} is no address of a Ray cluster: {e}.") from None
    except OSError as e:
        raise MeasureError(
            f"No Ray cluster answers at {address}: {why(e)}. Is its head up (`ray start --head`), and --fleet right?"
        ) from None


def _refusal(address: str, told: str) -> str:
    told = one_line(told, _TOLD_CHARS_MAX).rstrip(".")
    where = f"The Ray cluster at {address}" if address else "Ray on this machine"
    if _OTHER_VERSION.search(told):
        return f"{where} is of another version; use the same Ray and the same Python here and there: {told}."
    if _NO_TOKEN.search(told):
        told += f". Does it want a token? {_CURE}"
    return f"{where} does not take us: {told}."
