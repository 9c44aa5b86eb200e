"""Who writes the log: a thread, so that a disk that hangs, or a pipe that nobody reads, holds no request up."""

import contextlib
import os
import select
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

_BYTES_MAX = 32 << 20
"""What may wait to be written; the rest is lost rather than the gateway's memory."""


class Scribe:
    """Of one open file. ``keeps_open``: it is not ours to close."""

    def __init__(self, descriptor: int, *, keeps_open: bool = False) -> None:
        self._descriptor = descriptor
        self._keeps_open = keeps_open
        self._texts: SimpleQueue[bytes | None] = SimpleQueue()
        self._given_bytes = self._done_bytes = 0
        self._thread: Thread | None = None

    def write(self, text: bytes) -> None:
        """In its turn. Where there may be no thread, what a pipe does not take at once is lost."""
        if self._thread is None:  # not before it is needed: a process that forks must have none
            self._thread = _started(self._go_on)
        if self._thread is None:
            write_at_once(self._descriptor, text)
        elif self._given_bytes - self._done_bytes <= _BYTES_MAX:
            self._given_bytes += len(text)
            self._texts.put(text)

    def close(self) -> None:
        """When all is written; what is written meanwhile goes to the same file, wherever it is moved."""
        if self._thread is None:
            self._release()
        else:
            self._texts.put(None)

    def join(self, patience_s: float) -> None:
        """Wait until it is closed, but no longer."""
        if self._thread is not None:
            self._thread.join(patience_s)

    def _go_on(self) -> None:
        while (text := self._texts.get()) is not None:
            _write_out(self._descriptor, text)
            self._done_bytes += len(text)
        self._release()

    def _release(self) -> None:
        if not self._keeps_open:
            os.close(self._descriptor)


def write_at_once(descriptor: int, text: bytes) -> None:
    """As much as can be written without waiting; the rest is lost."""
    takes = select.poll()
    takes.register(descriptor, select.POLLOUT)
    for at in range(0, len(text), select.PIPE_BUF):
        if takes.poll(0):
            _write_out(descriptor, text[at : at + select.PIPE_BUF])


def _write_out(descriptor: int, text: bytes) -> None:
    rest = memoryview(text)
    with contextlib.suppress(OSError):  # a full disk takes the log, not the service
        while rest:
            rest = rest[os.write(descriptor, rest) :]


def _started(work: Callable[[], None]) -> Thread | None:
    """None where a limit allows no more threads."""
    thread = Thread(target=work, name="log", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread
