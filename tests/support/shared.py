"""Where data that is not ours to ship may lie: tests that want it skip, saying so, where it is absent."""

import os
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("WITHSTAND_SHARED") or Path(__file__).parents[2].parent / "shared")


def shared(name: str) -> Path:
    """A file of the shared data, or a skip."""
    path = ROOT / "data" / name
    if not path.exists():
        pytest.skip(f"the shared data is not here ({name})")
    return path
