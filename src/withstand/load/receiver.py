"""Who reads what has come: ``_receive.c`` where it could be built, else Python.

Both do the same in the same order. ``WITHSTAND_READER=python`` asks for the second.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from withstand.compiled import compiled
from withstand.load.poller import READ, Poller

Handler = Callable[[int], None]
_receive = None if os.environ.get("WITHSTAND_READER") == "python" else compiled("withstand.load._receive", __file__)
IS_COMPILED = _receive is not None
READER = "compiled" if IS_COMPILED else "Python"

if TYPE_CHECKING:
    from withstand.load._receive import Receiver, Round
    from withstand.load.connection import Connection
    from withstand.load.stamps import StampClock


def receiver(descriptor: int, connection: "Connection", stamps: "StampClock") -> "Receiver | None":
    """What handles the events of a connection's descriptor in place of ``on_event``; None = nothing does."""
    return None if _receive is None else _receive.Receiver(descriptor, connection, stamps)


class PythonRound:
    """One wait after another, and what it has found."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self._ready: list[tuple[int, int]] = []

    def wait(self, timeout_s: float) -> int:
        """Until something is ready, for at most so long; how many are."""
        self._ready = self._poller.wait(timeout_s)
        return len(self._ready)

    def has(self, descriptor: int) -> bool:
        """Whether it was found."""
        return (descriptor, READ) in self._ready

    def hand_over(self, handlers: list[Handler | None]) -> None:
        """Call who handles each of what was found with its events; who is not there any more is not called."""
        for descriptor, events in self._ready:
            handler = handlers[descriptor] if descriptor < len(handlers) else None
            if handler is not None:
                handler(events)


def round_of(poller: Poller) -> "PythonRound | Round":
    """The rounds of a loop over what this poller tells."""
    return PythonRound(poller) if _receive is None else _receive.Round(poller.descriptor)
