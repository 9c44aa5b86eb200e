"""The server as a child process: its configuration and its parent's questions come on stdin, answers go to stdout.

It ends when stdin is closed or its parent is gone, so that none is left behind whatever happens to the parent.
"""

import contextlib
import os
import signal
import sys
from functools import partial

import msgspec

from withstand import clock
from withstand.errors import WithstandError
from withstand.testing.truth.clockwork import Clockwork
from withstand.testing.truth.config import Config
from withstand.testing.truth.server import Server, prepare_process

_STDIN, _STDOUT = 0, 1
_LOOK_NS = 1_000_000_000


class Started(msgspec.Struct, frozen=True):
    """The first line that a child says: one of the two."""

    base_url: str | None = None
    error: str | None = None


class Control:
    """The parent's end of the line: ``truth``, ``reset`` and ``play …``, a line each, answered with a line each."""

    def __init__(self, server: Server, clockwork: Clockwork) -> None:
        self._server = server
        self._clockwork = clockwork
        self._parent = os.getppid()
        self._asked = b""
        clockwork.watch(_STDIN, self._hear)
        self._look_for_parent()

    def _hear(self, _: int) -> None:
        data = os.read(_STDIN, 4096)
        if not data:
            self._clockwork.stop()
            return
        *questions, self._asked = (self._asked + data).split(b"\n")
        for question in questions:
            self._clockwork.at(clock.now_ns(), partial(self._reply, question))

    def _reply(self, question: bytes) -> None:
        """After everything that was ready together with the question: what a client has seen is in the log."""
        if question == b"reset":
            self._server.reset()
        if question.startswith(b"play "):
            self._server.play(question[5:].decode())
        say(self._server.truth() if question == b"truth" else b"{}")

    def _look_for_parent(self) -> None:
        """A copy of the pipe may be held open by the parent's other children."""
        if os.getppid() != self._parent:
            self._clockwork.stop()
        self._clockwork.at(clock.now_ns() + _LOOK_NS, self._look_for_parent)


def say(line: bytes) -> None:
    """One line to the parent, however long; it may be gone already."""
    rest = memoryview(line + b"\n")
    with contextlib.suppress(BrokenPipeError):
        while rest:
            rest = rest[os.write(_STDOUT, rest) :]


def main() -> int:
    """Serve until the parent lets go."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to deal with
    clockwork = Clockwork()
    try:
        server = Server(msgspec.json.decode(sys.stdin.buffer.readline(), type=Config), clockwork)
    except WithstandError as e:
        say(msgspec.json.encode(Started(error=str(e))))
        return e.exit_code
    prepare_process()
    Control(server, clockwork)
    say(msgspec.json.encode(Started(base_url=server.base_url)))
    clockwork.run()
    server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
