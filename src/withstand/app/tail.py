"""What others append to files of lines while one looks: whole lines only, and never more at once than was asked for."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from withstand.record import Record, decode_record
from withstand.runs import RunFolder


class Tail:
    """One file. One that is not there, is a link, is no plain file or cannot be read has nothing new."""

    def __init__(self, path: Path, place: int = 0) -> None:
        self._path = path
        self.place = place
        """Up to where it has been read."""

    def read(self, most: int | None = None) -> bytes:
        """Whole lines that were not read yet; of more than ``most`` bytes the first ones.

        A line that is longer than ``most`` comes in pieces, which are none.
        """
        try:
            data = self._new(-1 if most is None else most)
        except OSError:
            return b""
        end = data.rfind(b"\n") + 1
        if not end and most is not None and len(data) >= most:
            end = len(data)
        self.place += end
        return data[:end]

    def _new(self, most: int) -> bytes:
        descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return b""
            self.place = min(self.place, status.st_size)  # it was cut, or is another one
            file.seek(self.place)
            return file.read(most)


class RecordTail:
    """Follows the records of a stage from where the workers' files end now."""

    def __init__(self, folder: RunFolder, stage: int) -> None:
        self._folder = folder
        self._stage = stage
        self._tails = {path: Tail(path, path.stat().st_size) for path in folder.worker_files()}

    def read(self) -> Iterator[Record]:
        """What is new, once it is asked for. What is no record is left to whoever reads the folder in the end."""
        for path in self._folder.worker_files():
            for line in self._tails.setdefault(path, Tail(path)).read().splitlines():
                record = record_of(line)
                if record and record.stage == self._stage:
                    yield record


def record_of(line: bytes) -> Record | None:
    """None where a line is no record."""
    try:
        return decode_record(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
