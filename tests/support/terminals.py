"""A command on a terminal of its own, of which every byte is kept."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Self

_PATIENCE_S = 60.0


class OnTerminal:
    """Started in a session of its own, so that a Ctrl-C that is typed reaches all of it."""

    def __init__(
        self, command: Sequence[str], *, columns: int, rows: int, env: Mapping[str, str] | None = None
    ) -> None:
        self.text = ""
        self._bytes = b""
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            ours = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
            os.execve(command[0], list(command), {**ours, "TERM": "xterm-256color", **(env or {})})
        self.resize(columns, rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._master)
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def resize(self, columns: int, rows: int) -> None:
        """As a user does by pulling at a corner."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, data: bytes) -> None:
        """On its keyboard."""
        os.write(self._master, data)

    def wait_for(self, seen: Callable[[str], bool]) -> str:
        """Everything that was written, once it has what is waited for."""
        until = time.monotonic() + _PATIENCE_S
        while not seen(self.text):
            assert time.monotonic() < until, self.text[-3000:]
            assert self._hear(), self.text[-3000:]
        return self.text

    def wait(self) -> int:
        """Its exit code, when all is written."""
        until = time.monotonic() + _PATIENCE_S
        while self._hear():
            assert time.monotonic() < until, self.text[-3000:]
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def _hear(self) -> bool:
        """False = nobody will write any more."""
        readable, _, _ = select.select([self._master], [], [], 1.0)
        if readable:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # how Linux says it
                return False
            self._bytes += data
            self.text = self._bytes.decode("utf-8", "replace")
            return bool(data)
        return True
