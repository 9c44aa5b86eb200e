"""Writes on their way into a socket: stamped as they go, kept while the client does not read."""

import socket
import ssl
from collections import deque
from collections.abc import Iterable
from typing import Final

from withstand import clock
from withstand.testing.truth.score import Mark, Write
from withstand.testing.truth.served import Entry

BUSY: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _Rest:
    """A write of which some bytes are out, or none."""

    __slots__ = ("at_ns", "data", "entry", "marks", "out")

    def __init__(self, write: Write, entry: Entry | None) -> None:
        self.at_ns = write.at_ns
        self.data = memoryview(write.data)
        self.marks: deque[Mark] = deque(write.marks)
        self.entry = entry
        self.out = 0

    def passed(self, count: int) -> list[Mark]:
        """The marks within the ``count`` bytes that went now."""
        self.out += count
        passed = []
        while self.marks and self.marks[0].end <= self.out:
            passed.append(self.marks.popleft())
        return passed


class Outbox:
    """One connection's writing side. Never blocks; ``put`` and ``drain`` raise OSError when the client is gone."""

    __slots__ = ("_begun_ns", "_due_ns", "_entry", "_rests", "_socket", "_stuck_ns")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._rests: deque[_Rest] = deque()
        self._stuck_ns = 0
        # What is due together begins with its first write.
        self._entry: Entry | None = None
        self._due_ns = self._begun_ns = 0

    def __bool__(self) -> bool:
        return bool(self._rests)

    def put(self, write: Write, entry: Entry | None) -> None:
        """Hand over what the kernel takes, keep the rest."""
        if self._rests:
            self._rests.append(_Rest(write, entry))
        elif not self._went_at_once(write, entry):
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

    def _went_at_once(self, write: Write, entry: Entry | None) -> bool:
        """The usual way: the kernel takes all of it. Else what is left waits."""
        before_ns = clock.now_ns()
        try:
            count = self._socket.send(write.data)
        except BUSY:
            self._rests.append(_Rest(write, entry))
            return False
        if count == len(write.data):
            self._log(entry, write.at_ns, write.marks, before_ns)
            return True
        rest = _Rest(write, entry)
        self._rests.append(rest)
        self._log(entry, write.at_ns, rest.passed(count), before_ns)
        return False

    def _push(self) -> None:
        while self._rests:
            rest = self._rests[0]
            while rest.out < len(rest.data):
                before_ns = clock.now_ns()
                try:
                    count = self._socket.send(rest.data[rest.out :])
                except BUSY:
                    return
                self._log(rest.entry, rest.at_ns, rest.passed(count), before_ns)
            self._rests.popleft()

    def _log(self, entry: Entry | None, due_ns: int, marks: Iterable[Mark], before_ns: int) -> None:
        """A send that began at ``before_ns`` took the bytes up to these marks."""
        if entry is None:
            return
        if entry is not self._entry or due_ns != self._due_ns:
            self._entry, self._due_ns, self._begun_ns = entry, due_ns, before_ns
        if entry.first_write_ns is None:
            entry.first_write_ns = before_ns
        for mark in marks:
            if mark.tokens:
                entry.told(mark.tokens, before_ns)
            else:
                entry.whole(self._begun_ns, clock.now_ns())
