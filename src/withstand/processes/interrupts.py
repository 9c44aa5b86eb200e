"""Ctrl-C that waits: while somebody is started or told to end, who would be forgotten were we interrupted."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def deferred() -> Iterator[Sequence[int]]:
    """What would raise an error is heard at the end of the block; in it, the signals that have come.

    No other thread than the main one is interrupted at all.
    """
    heard: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    before = {number: handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}
    for number in before:
        signal.signal(number, lambda number, _: heard.append(number))
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if heard:
            before[signal.Signals(heard[0])](heard[0], None)
