"""Who reads what has come: ``_receive.c`` where it could be built, else Python.

Both do the same in the same order. ``WITHSTAND_READER=python`` asks for the second.
"""

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING


def _source() -> str:
    """Of which text the compiled one has to be."""
    return sha256(Path(__file__).with_name("_receive.c").read_bytes()).hexdigest()


try:
    from withstand.load import _receive
except ImportError:  # no compiler when withstand was installed, or no Linux
    IS_COMPILED = False
else:  # the source may have changed since
    IS_COMPILED = os.environ.get("WITHSTAND_READER") != "python" and _source() == getattr(_receive, "SOURCE", "")

READER = "compiled" if IS_COMPILED else "Python"

if TYPE_CHECKING:
    from withstand.load._receive import Receiver
    from withstand.load.connection import Connection
    from withstand.load.stamps import StampClock


def receiver(descriptor: int, connection: "Connection", stamps: "StampClock") -> "Receiver | None":
    """What handles the events of a connection's descriptor in place of ``on_event``; None = nothing does."""
    return _receive.Receiver(descriptor, connection, stamps) if IS_COMPILED else None


def _hand_over(ready: list[tuple[int, int]], handlers: dict[int, Callable[[int], None]]) -> None:
    """Call who handles each descriptor with its events; who is not there any more is not called."""
    for descriptor, events in ready:
        handler = handlers.get(descriptor)
        if handler is not None:
            handler(events)


hand_over = _receive.hand_over if IS_COMPILED else _hand_over
