"""A process that is ours: started, waited for until it is healthy, ended whatever happens.

It gets a process group of its own, so the terminal's Ctrl-C does not end it before its requests are drained; a pipe as
stdin that closes when we die, which a program of ours heeds by ``lifeline``; and a file for all that it says.
It knows nothing of what the process serves.
"""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from withstand import clock
from withstand.errors import EngineError
from withstand.processes.words import ending, killer, said_reason, tail
from withstand.wire.reply import one_line

_LOOK_S = 0.02
_ANSWER_S = 2.0
_STATUS = re.compile(rb"\S+\s+(\d{3})\b")
HEALTHY = 200


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """How a process is run. ``env`` is laid over our own environment; ``health_url`` answers 200 when it is ready.

    ``reason`` is a pattern of what its log says when it fails, better than the last line; its group is quoted.
    """

    name: str
    argv: tuple[str, ...]
    env: dict[str, str] = {}
    log_file: Path
    health_url: str
    reason: str | None = None
    ready_within_s: float = 60.0
    stop_s: float = 5.0
    """Until it is killed."""


class Running(msgspec.Struct, frozen=True):
    """A service that has become healthy."""

    pid: int
    ready_s: float


@contextmanager
def running(service: Service) -> Iterator[Running]:
    """The service, healthy inside the block and gone after it.

    Raises:
        EngineError: it cannot be started, ended by itself, or was not healthy in time.
    """
    started_ns = clock.now_ns()
    log_start, process = _start(service)
    try:
        _wait_until_healthy(service, process, started_ns, log_start)
        yield Running(pid=process.pid, ready_s=(clock.now_ns() - started_ns) / 1e9)
        if process.poll() is not None:
            raise EngineError(f"{service.name} ended in the middle of the work{_words(service, process, log_start)}")
    finally:
        _stop(process, service.stop_s)


def _start(service: Service) -> tuple[int, subprocess.Popen[bytes]]:
    """Where its part of the log begins, and the process."""
    try:
        with service.log_file.open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - argv is built by us, without a shell
                service.argv,
                env=os.environ | service.env,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            return log.tell(), process
    except OSError as e:
        raise EngineError(f"{service.name} cannot be started: {e.filename or service.argv[0]}: {e.strerror}.") from None


def _wait_until_healthy(service: Service, process: subprocess.Popen[bytes], started_ns: int, log_start: int) -> None:
    give_up_ns = started_ns + int(service.ready_within_s * 1e9)
    while (status := status_at(service.health_url)) != HEALTHY:
        if process.poll() is not None:
            raise EngineError(f"{service.name} ended at its start{_words(service, process, log_start)}")
        if clock.now_ns() > give_up_ns:
            late = not_ready(service.ready_within_s, service.health_url, status)
            raise EngineError(f"{service.name} {late}{_words(service, process, log_start)}")
        clock.sleep_s(_LOOK_S)


def not_ready(within_s: float, url: str, status: int | None) -> str:
    """A clause of one whose time is over; ``status`` is what it has answered last."""
    told = f" (it answers {status} at {urlsplit(url).path or '/'})" if status else ""
    return f"was not ready within {within_s:g} s{told}"


def is_healthy(url: str) -> bool:
    """Whether a GET is answered with 200."""
    return status_at(url) == HEALTHY


def status_at(url: str, within_s: float = _ANSWER_S) -> int | None:
    """With which a GET is answered; None = nobody listens yet, it is too busy, or it speaks no HTTP."""
    at = urlsplit(url)
    question = f"GET {at.path or '/'} HTTP/1.0\r\nHost: {at.netloc}\r\n\r\n"
    try:
        with socket.create_connection((at.hostname, at.port), timeout=within_s) as connection:
            connection.sendall(question.encode("ascii"))
            found = _STATUS.match(connection.recv(64))
    except OSError:
        return None
    return int(found[1]) if found else None


def _stop(process: subprocess.Popen[bytes], stop_s: float) -> None:
    """Everything is asked for before anything is waited for: a second Ctrl-C in here leaves nothing running."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    _signal_group(process, signal.SIGTERM)
    try:
        process.wait(stop_s)
    except subprocess.TimeoutExpired:
        _signal_group(process, signal.SIGKILL)
        process.wait()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """The process leads its group; one that was waited for has none that is surely ours."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def _words(service: Service, process: subprocess.Popen[bytes], log_start: int) -> str:
    return last_words(service.log_file, log_start, process.poll(), service.reason)


def last_words(log: Path | int, log_start: int, code: int | None, reason: str | None) -> str:
    """How it ended, if it did, and why, in its own words. Who was killed has not said why."""
    how = ending(code)
    why = one_line(said_reason(tail(log, log_start), reason))
    if not why:
        told = ", as one that was told to end," if code == 0 else ""
        return f"{how}{told} and said nothing."
    return f"{how}. The end of its log: {why}" if killer(code) else f"{how}: {why}"
