"""The Ray cluster that we attach to, or start on this machine where none runs. Every refusal is one sentence.

Only the bridge imports this: Ray's threads and its chatter stay there.
"""

import os
import re
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from withstand.errors import MeasureError
from withstand.load.ray.door import door_of, wants_token
from withstand.load.ray.hand import Hand
from withstand.load.ray.token import CURE, env_for, env_for_own
from withstand.wire.reply import one_line

_NEW = "local"
_STORE_BYTES = 128 << 20
_TOLD_CHARS_MAX = 300
_OTHER_VERSION = re.compile("versions? (mismatch|differ)|incompatible", re.IGNORECASE)
_NO_TOKEN = re.compile("timeout|timed out|failed to connect|authenti|authoriz", re.IGNORECASE)
"""Whoever shows no token, or a wrong one, is told no more than this."""
_STILLBORN = re.compile("Starting Ray client server failed|Proxy failed to Connect to backend")
"""Ray forks a server for each client, which a race kills now and then (their issue 63202); the next one lives."""
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
            self.started = _connect(address, cpus)
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
        _join(address)
        return False
    try:
        ray.init("auto", **_QUIET)
    except ConnectionError:
        _start_local(cpus)
        return True
    _see_token_wanted()
    return False


def _join(address: str) -> None:
    try:
        ray.init(address, **_QUIET)
    except ConnectionError as e:
        if not _STILLBORN.search(str(e)):
            raise
        ray.init(address, **_QUIET)


def _see_token_wanted() -> None:
    """Ray shows a token that it finds to any cluster of this machine; only now do we know which one that is."""
    address = ray.get_runtime_context().gcs_address
    door = door_of(address)
    env_for(os.environ, f"The Ray cluster at {address}", wanted=wants_token(door) if door else None)


def _start_local(cpus: int) -> None:
    """A cluster of this machine alone, for as long as we live. It tells nobody, and does not make us wait."""
    os.environ.update(env_for_own(os.environ), RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")
    ray.init(_NEW, num_cpus=cpus, include_dashboard=False, object_store_memory=_STORE_BYTES, **_QUIET)


def _refusal(address: str, told: str) -> str:
    told = one_line(told, _TOLD_CHARS_MAX).rstrip(".")
    where = f"The Ray cluster at {address}" if address else "Ray on this machine"
    if _OTHER_VERSION.search(told):
        return f"{where} is of another version; use the same Ray and the same Python here and there: {told}."
    if _NO_TOKEN.search(told) and not _STILLBORN.search(told):
        told += f". Does it want a token, or another one? {CURE}"
    return f"{where} does not take us: {told}."
