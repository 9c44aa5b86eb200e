"""Who reads what has come: ``_receive.c`` where it could be built, else Python.

Both do the same in the same order. ``WITHSTAND_READER=python`` asks for the second.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from withstand.compiled import compiled

_receive = None if os.environ.get("WITHSTAND_READER") == "python" else compiled("withstand.load._receive", __file__)
IS_COMPILED = _receive is not None
READER = "compiled" if IS_COMPILED else "Python"

if TYPE_CHECKING:
    from withstand.load._receive import Receiver
    from withstand.load.connection import Connection
    from withstand.load.stamps import StampClock


def receiver(descriptor: int, connection: "Connection", stamps: "StampClock") -> "Receiver | None":
    """What handles the events of a connection's descriptor in place of ``on_event``; None = nothing does."""
    return None if _receive is None else _receive.Receiver(descriptor, connection, stamps)


def _hand_over(ready: list[tuple[int, int]], handlers: list[Callable[[int], None] | None]) -> None:
    """Call who handles each descriptor with its events; who is not there any more is not called."""
    for descriptor, events in ready:
        handler = handlers[descriptor] if descriptor < len(handlers) else None
        if handler is not None:
            handler(events)


hand_over = _hand_over if _receive is None else _receive.hand_over
