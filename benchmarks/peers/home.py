"""Where the other clients live on this machine. Knows paths, and nothing else."""

import os
from pathlib import Path


def home() -> Path:
    """``WITHSTAND_PEERS``, or a folder of the user's cache."""
    return Path(os.environ.get("WITHSTAND_PEERS") or Path.home() / ".cache" / "withstand" / "peers").absolute()


def environment_of(client: str) -> Path:
    """The virtual environment of one client."""
    return home() / client


def receipt(client: str) -> Path:
    """Tells, when its environment is complete, what was installed."""
    return environment_of(client) / "installed"


def is_installed(client: str) -> bool:
    """Whether its environment is complete."""
    return receipt(client).exists()


def program(client: str, name: str) -> str:
    """A program of the client's environment."""
    return str(environment_of(client) / "bin" / name)
