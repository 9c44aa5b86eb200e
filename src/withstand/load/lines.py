"""Whole lines from a descriptor: what processes of ours say to each other. It knows pipes, not what the lines mean."""

import contextlib
import os
from collections import deque

_READ_BYTES = 1 << 16


def say_line(descriptor: int, line: bytes) -> None:
    """One, all of it, without its end; if nobody listens any more, the end of what we listen to will say so."""
    rest = memoryview(line + b"\n")
    with contextlib.suppress(BrokenPipeError):
        while rest:
            rest = rest[os.write(descriptor, rest) :]


class Lines:
    """Reads ahead, and forgets nothing that came behind the line asked for."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._whole: deque[bytes] = deque()
        self._tail = b""
        self.ended = False
        """Whether the other side has closed; what is still waiting can be read all the same."""

    @property
    def waiting(self) -> bool:
        """Whether a line is here already: the descriptor need not become readable for it."""
        return bool(self._whole)

    def read(self) -> list[bytes]:
        """Those that have come; blocks unless something waits or the descriptor is readable."""
        if not self._whole:
            self._fill()
        lines = list(self._whole)
        self._whole.clear()
        return lines

    def wait(self) -> bytes:
        """The next one, however long it takes; empty at the end."""
        while not self._whole and not self.ended:
            self._fill()
        return self._whole.popleft() if self._whole else b""

    def _fill(self) -> None:
        data = os.read(self._descriptor, _READ_BYTES)
        self.ended = not data
        *lines, self._tail = (self._tail + data).split(b"\n")
        self._whole.extend(lines)
