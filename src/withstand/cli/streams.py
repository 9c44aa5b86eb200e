"""stdout and stderr as verbs get them: to write on them never fails, so nothing that is measured stops for it.

What stdout did not take is told when the verb has ended. The reader of a pipe that has left wanted no more.
"""

import errno
import io
import os
import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from withstand.cli.stand_ins import STAND_INS
from withstand.errors import StorageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_DIGITS_MAX = 4


class _Outlet(io.FileIO):
    """Once it does not take something, all the rest goes nowhere."""

    fault: OSError | None = None

    def write(self, data: "ReadableBuffer", /) -> int:
        """As if all were written."""
        if self.fault is None:
            try:
                return self._written(data)
            except OSError as e:
                self.fault = e
        return memoryview(data).nbytes

    def _written(self, data: "ReadableBuffer") -> int:
        """One that does not block, as another process may have made it, is waited for."""
        while (count := super().write(data)) is None:
            select.select([], [self], [])
        return count


class _Stream(io.TextIOWrapper):
    """Text for an outlet."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        self.outlet = _Outlet(stream.fileno(), "w", closefd=False)
        buffer = io.BufferedWriter(self.outlet)
        super().__init__(buffer, stream.encoding, STAND_INS, line_buffering=stream.line_buffering)


def usable(stream: TextIO | None) -> TextIO:
    """One that is closed leads nowhere; one that is not the process's own stays, but for its marks."""
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    if stream in (sys.__stdout__, sys.__stderr__):
        return _Stream(stream)
    stream.reconfigure(errors=STAND_INS)
    return stream


def forget_odd_sizes() -> None:
    """A shell that does not know its terminal's width may say 0."""
    for name in ("COLUMNS", "LINES"):
        size = os.environ.get(name, "")
        if not (size.isascii() and size.isdigit() and len(size) <= _DIGITS_MAX and int(size) > 0):
            os.environ.pop(name, None)


def is_heard() -> bool:
    """Whether stdout has taken everything so far."""
    return _fault() is None


def check_written(kept_in: Path | None = None) -> None:
    """Of the result on stdout, at its end.

    Raises:
        StorageError: it was not taken, by other than a reader who has left.
    """
    e = _fault()
    if e is not None and e.errno != errno.EPIPE:
        where = f"; the folder {kept_in} has it" if kept_in else ""
        raise StorageError(f"The result cannot be written to stdout: {e.strerror}{where}. Lead it elsewhere.")


def _fault() -> OSError | None:
    return sys.stdout.outlet.fault if isinstance(sys.stdout, _Stream) else None
