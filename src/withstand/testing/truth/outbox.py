"""Writes on their way into a socket: stamped as they go, kept while the client does not read."""

import socket
import ssl
from collections import deque
from typing import Final

from withstand import clock
from withstand.testing.truth.score import Mark, Write
from withstand.testing.truth.served import Entry

BUSY: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _Rest:
    """A write of which some bytes are out."""

    __slots__ = ("at_ns", "data", "entry", "marks", "out")

    def __init__(self, write: Write, entry: Entry | None) -> None:
        self.at_ns = write.at_ns
        self.data = memoryview(write.data)
        self.marks: deque[Mark] = deque(write.marks)
        self.entry = entry
        self.out = 0

    def went(self, count: int, before_ns: int, begun_ns: int) -> None:
        """``count`` bytes more went in a send that began at ``before_ns``; what is due together began earlier."""
        self.out += count
        entry = self.entry
        if entry is None:
            return
        if entry.first_write_ns is None:
            entry.first_write_ns = before_ns
        while self.marks and self.marks[0].end <= self.out:
            tokens = self.marks.popleft().tokens
            if tokens:
                entry.told(tokens, before_ns)
            else:
                entry.whole(begun_ns, clock.now_ns())


class Outbox:
    """One connection's writing side. Never blocks; ``put`` and ``drain`` raise OSError when the client is gone."""

    __slots__ = ("_begun_ns", "_due", "_rests", "_socket", "_stuck_ns")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._rests: deque[_Rest] = deque()
        self._stuck_ns = 0
        self._begun_ns = 0
        self._due: tuple[Entry | None, int] | None = None

    def __bool__(self) -> bool:
        return bool(self._rests)

    def put(self, write: Write, entry: Entry | None) -> None:
        """Hand over what the kernel takes, keep the rest."""
        self._rests.append(_Rest(write, entry))
        if len(self._rests) == 1:
            self._push()
            self._stuck_ns = clock.now_ns() if self._rests else 0

    def drain(self) -> None:
        """The socket takes more."""
        first = self._rests[0].entry if self._rests else None
        self._push()
        now_ns = clock.now_ns()
        if first is not None:
            first.blocked_ns += now_ns - self._stuck_ns
        self._stuck_ns = now_ns

    def _push(self) -> None:
        while self._rests:
            rest = self._rests[0]
            while rest.out < len(rest.data):
                before_ns = clock.now_ns()
                try:
                    count = self._socket.send(rest.data[rest.out :])
                except BUSY:
                    return
                rest.went(count, before_ns, self._begun(rest, before_ns))
            self._rests.popleft()

    def _begun(self, rest: _Rest, before_ns: int) -> int:
        """When the first of the writes that are due together began."""
        due = (rest.entry, rest.at_ns)
        if due != self._due:
            self._due, self._begun_ns = due, before_ns
        return self._begun_ns
