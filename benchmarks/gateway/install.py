"""Installs other gateways, each pinned and in a virtual environment of its own.

    python -m benchmarks.gateway.install [NAME …]

They go under ``WITHSTAND_PEERS``, as the benchmark clients do. nginx is the system's: ``apt-get install nginx-light``.
production-stack is on no index; where GitHub is out of reach, ``WITHSTAND_PRODUCTION_STACK`` names a checkout of it.
"""

import os
from typing import Final

from benchmarks.peers.install import Recipe, install_named

_PRODUCTION_STACK: Final = (
    "git+https://github.com/vllm-project/production-stack@a6c01db05f65f556235413ba8dbcfb0c01132fff"
)

RECIPES: Final = {
    "litellm": Recipe(("litellm[proxy]==1.108.7",)),
    "production-stack": Recipe((os.environ.get("WITHSTAND_PRODUCTION_STACK") or _PRODUCTION_STACK,), python=(3, 12)),
    "sglang-router": Recipe(("sglang-router==0.3.2",)),
    "vllm-router": Recipe(("vllm-router==0.1.17",)),
}

if __name__ == "__main__":
    install_named(RECIPES)
