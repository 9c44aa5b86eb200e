"""All adapters by name, in the order in which tables show them."""

import sys
from collections.abc import Mapping
from typing import Final

from benchmarks.peers.aiperf import Aiperf
from benchmarks.peers.client import Client
from benchmarks.peers.genai_bench import GenaiBench
from benchmarks.peers.guidellm import Guidellm
from benchmarks.peers.home import is_installed
from benchmarks.peers.inference_perf import InferencePerf
from benchmarks.peers.sglang import Sglang, SglangRust
from benchmarks.peers.vllm import Vllm
from benchmarks.peers.withstand_ import Withstand

_ALL: Final[tuple[Client, ...]] = (
    Withstand(),
    Vllm(),
    Sglang(),
    SglangRust(),
    Guidellm(),
    Aiperf(),
    GenaiBench(),
    InferencePerf(),
)

CLIENTS: Final[Mapping[str, Client]] = {client.name: client for client in _ALL}


def chosen(names: list[str]) -> list[Client]:
    """The clients of these names; none named = all.

    Raises:
        SystemExit: a name that no adapter has.
    """
    if unknown := [name for name in names if name not in CLIENTS]:
        raise SystemExit(f"There is no adapter for {', '.join(unknown)}; there are {', '.join(CLIENTS)}.")
    return [client for client in _ALL if not names or client.name in names]


def installed(clients: list[Client]) -> list[Client]:
    """Those of them that are on this machine; the others are named on stderr."""
    there = [client for client in clients if client.environment is None or is_installed(client.environment)]
    if absent := [client.name for client in clients if client not in there]:
        print(
            f"Not installed, so left out: {', '.join(absent)}. See python -m benchmarks.peers.install.", file=sys.stderr
        )
    return there
