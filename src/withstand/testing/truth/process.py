"""A truth server in a process of its own, for the length of a ``with`` block."""

import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypedDict, Unpack

import msgspec

from withstand.errors import MeasureError, UsageError, WithstandError
from withstand.testing.truth.asked import Play, altered
from withstand.testing.truth.behaviours import Mix
from withstand.testing.truth.config import Config
from withstand.testing.truth.schedule import Schedule
from withstand.testing.truth.served import Served, decode_log

Family = Literal["ipv4", "ipv6", "unix"]
_STOP_S = 5.0


class Options(TypedDict, total=False):
    """The further fields of a Config."""

    port: int
    slots: int | None
    batch: float
    models: tuple[str, ...] | None
    max_model_len: int | None
    api_key: str | None
    keep_bodies: bool
    keep_requests: bool
    seed: int


class TruthServer:
    """Ready when ``__enter__`` returns, gone when ``__exit__`` does.

    ``tls`` holds the PEM files of a certificate and its key; a client that verifies needs its CA.
    """

    base_url: str

    def __init__(
        self,
        schedule: Schedule | None = None,
        *,
        behaviour: str | Mix = "plain",
        family: Family = "ipv4",
        tls: tuple[Path, Path] | None = None,
        **options: Unpack[Options],
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="truth-") if family == "unix" else None
        self.config = Config(
            schedule=schedule or Schedule(),
            behaviour=behaviour if isinstance(behaviour, str) else dict(behaviour),
            host="::1" if family == "ipv6" else "127.0.0.1",
            unix_path=f"{self._folder.name}/server.sock" if self._folder else None,
            certfile=str(tls[0]) if tls else None,
            keyfile=str(tls[1]) if tls else None,
            **options,
        )
        self.config.tls_context()  # a bad file shows here, where it was named
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-P", "-m", "withstand.testing.truth.child"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - our own module
        try:
            self.base_url = self._url_from(self._ask(msgspec.json.encode(self.config)))
        except WithstandError:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The child's; None = it does not run."""
        return self._process.pid if self._process else None

    def truth(self) -> list[Served]:
        """What was served so far, in order of arrival; an unfinished answer is in it as far as it is."""
        return decode_log(self._ask(b"truth"))

    def reset(self) -> None:
        """Forget what was served; numbers, and a mixture of behaviours, begin again."""
        self._ask(b"reset")

    def play(self, text: str) -> None:
        """Answer what comes from now on so: ``ttft=30,behaviour=crlf``; an empty text is the configuration again."""
        altered(Play(Schedule()), text)  # a mistake shows here, where it was made
        self._ask(f"play {text}".encode())

    def close(self) -> None:
        """End the process; a second time does nothing."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)
        if self._folder is not None:
            self._folder.cleanup()

    def _ask(self, question: bytes) -> bytes:
        process = self._process
        if process is None:
            raise MeasureError("The truth server does not run; use it inside its with block.")
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):  # it has ended: the answer says so
            process.stdin.write(question + b"\n")
            process.stdin.flush()
        answer = process.stdout.readline()
        if not answer.endswith(b"\n"):  # nothing, or half of it
            raise MeasureError("The truth server has ended by itself; its stderr says why.")
        return answer

    def _url_from(self, line: bytes) -> str:
        started = msgspec.json.decode(line, type=dict[str, str | None])
        if error := started["error"]:
            raise UsageError(error)
        return started["base_url"] or ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """It ends when its stdin does; a process that does not is killed."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):  # it has ended already, with a question unread
        process.stdin.close()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
