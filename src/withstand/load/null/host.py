"""The null server in a process of its own, for the length of a ``with`` block."""

import os
import selectors
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from withstand import clock
from withstand.errors import MeasureError
from withstand.load.child import Child
from withstand.load.null.talk import Account, Begin, Listening, Tell

_PATIENCE_S = 30.0
_Word = TypeVar("_Word", Account, Listening)


class NullServer:
    """Ready when the block begins, gone when it ends; ``core`` = the only one that it may run on."""

    port: int

    def __init__(self, log: Path, core: int | None = None, patience_s: float = _PATIENCE_S) -> None:
        """``patience_s``: who has not answered by then has stopped."""
        self._log = log
        self._core = core
        self._patience_s = patience_s
        self._child: Child

    def __enter__(self) -> Self:
        self._child = Child("withstand.load.null.server", self._log)
        if self._core is not None:
            os.sched_setaffinity(self._child.pid, {self._core})
        try:
            self.port = self._hear(Listening).port
        except BaseException:
            self._child.end()
            raise
        return self

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._child.pid

    def begin(self, rule: Begin) -> None:
        """Forget what was served; serve like this."""
        self._child.send(msgspec.json.encode(rule))

    def account(self) -> Account:
        """What was served since then.

        Raises:
            MeasureError: it has ended by itself, or does not answer.
        """
        self._child.send(msgspec.json.encode(Tell()))
        return self._hear(Account)

    def _hear(self, kind: type[_Word]) -> _Word:
        until_ns = clock.now_ns() + int(self._patience_s * 1e9)
        with selectors.DefaultSelector() as selector:
            selector.register(self._child, selectors.EVENT_READ)
            while (left_ns := until_ns - clock.now_ns()) > 0:
                lines = self._child.hear() if selector.select(left_ns / 1e9) else []
                if lines:
                    return msgspec.json.decode(lines[0], type=kind)
                if self._child.ended:
                    raise MeasureError(f"The null server has ended by itself: {self._child.why()}.")
        raise MeasureError(f"The null server has not answered for {self._patience_s:g} s; is the machine overloaded?")

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self._child.end()
