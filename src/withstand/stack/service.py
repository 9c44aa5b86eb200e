"""A process that we own: started with a log, watched until it is ready, ended with everything that it started.

Its standard input is a pipe that only we hold. It must end when that pipe ends, so that a ``kill -9`` of us leaves
nothing behind; and it is in a session of its own, so that Ctrl-C reaches us and not it.
"""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from withstand import clock
from withstand.errors import EngineError

_POLL_S = 0.05
_END_S = 5.0


class Service:
    """A context: at its end the process is gone."""

    def __init__(self, name: str, argv: Sequence[str], *, env: Mapping[str, str], log: Path) -> None:
        self.name = name
        self._argv = list(argv)
        self._env = {**os.environ, **env}
        self._log = log
        self._process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """Of the process, which leads its group."""
        return self._process.pid

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own argv
                self._argv, env=self._env, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )
        return self

    def wait_until_healthy(self, port: int, path: str, timeout_s: float) -> None:
        """Until a GET of ``path`` at its port is answered by 200.

        Raises:
            EngineError: the process ended, or the time did.
        """
        until_ns = clock.now_ns() + int(timeout_s * 1e9)
        while not _answers(port, path):
            if self._process.poll() is not None:
                raise EngineError(f"{self.name} ended while it started: {self.last_words()}. Its log is {self._log}.")
            if clock.now_ns() > until_ns:
                raise EngineError(f"{self.name} was not ready within {timeout_s:g} s; its log is {self._log}.")
            clock.sleep_s(_POLL_S)

    def last_words(self) -> str:
        """The last line of its log, or its exit status."""
        lines = self._log.read_text("utf-8", "replace").strip().splitlines()
        return lines[-1][:200] if lines else f"exit status {self._process.returncode}"

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            try:
                self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                continue
            return


def listens(port: int) -> bool:
    """Whether a connection to this port of this machine is accepted."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1.0)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def free_port() -> int:
    """A port that nobody uses at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
