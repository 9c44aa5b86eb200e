"""Programs of others that we start: kept by a process that ends all that came of them, and quoted when they fail."""

import sys
from collections.abc import Iterable
from pathlib import Path

KEEPER_S = 3.0
"""What the keeper takes besides the time that it gives."""


def under_keeper(argv: Iterable[str], stop_s: float, limits: Iterable[str] = ()) -> tuple[str, ...]:
    """The command that runs another one under a keeper, which ends it when its own stdin ends; its output is theirs.

    ``limits`` are the keeper's own options, such as ``--cpus=0,1`` and ``--memory-bytes=N``.

    The keeper needs the standard library alone, so neither the environment nor installed packages change what it does.
    """
    keeper = Path(__file__).with_name("keeper.py")
    return (sys.executable, "-I", "-S", str(keeper), *limits, f"{stop_s:g}", *argv)
