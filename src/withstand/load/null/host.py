"""The null server in a process of its own, for the length of a ``with`` block."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from withstand.errors import MeasureError
from withstand.load.null.talk import Account, Begin, Listening, Tell

_STOP_S = 5.0
_Word = TypeVar("_Word", Account, Listening)


class NullServer:
    """Ready when the block begins, gone when it ends; ``core`` = the only one that it may run on."""

    port: int

    def __init__(self, log: Path, core: int | None = None) -> None:
        self._log = log
        self._core = core
        self._process: subprocess.Popen[bytes]

    def __enter__(self) -> Self:
        with self._log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "withstand.load.null.server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        if self._core is not None:
            os.sched_setaffinity(self._process.pid, {self._core})
        try:
            self.port = self._hear(Listening).port
        except MeasureError:
            self.close()
            raise
        return self

    def begin(self, rule: Begin) -> None:
        """Forget what was served; serve like this.

        Raises:
            MeasureError: it has ended by itself.
        """
        self._say(rule)

    def account(self) -> Account:
        """What was served since then.

        Raises:
            MeasureError: it has ended by itself.
        """
        self._say(Tell())
        return self._hear(Account)

    def _say(self, word: Begin | Tell) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(word) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def _hear(self, kind: type[_Word]) -> _Word:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._ended()
        return msgspec.json.decode(line, type=kind)

    def _ended(self) -> MeasureError:
        lines = self._log.read_text("utf-8", "replace").strip().splitlines()
        return MeasureError(f"The null server has ended by itself: {lines[-1] if lines else 'it said nothing'}.")

    def close(self) -> None:
        """It stops by itself when its standard input ends; if not, it is killed."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):  # it has ended before we could say something
                pipe.close()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
