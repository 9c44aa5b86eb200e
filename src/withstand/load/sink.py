"""Where a worker's records go: one ``write`` a record, so that a finished request is on file whatever happens next."""

import os
from pathlib import Path

from withstand.errors import StorageError
from withstand.record import Record, encode_record


class RecordSink:
    """An append-only file of lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            self._close_cut_line()
        except OSError as e:
            raise self._error(e) from None

    def _close_cut_line(self) -> None:
        """A crash may have left half a line: what follows must not be glued to it."""
        size = os.fstat(self._descriptor).st_size
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            os.write(self._descriptor, b"\n")

    def append(self, record: Record) -> None:
        """One record, whole or not at all.

        Raises:
            StorageError: the disk is full, or gone.
        """
        self.write(encode_record(record) + b"\n")

    def write(self, lines: bytes) -> None:
        """Whole lines, all or none of them.

        Raises:
            StorageError: the disk is full, or gone.
        """
        written = 0
        try:
            while written < len(lines):
                written += os.write(self._descriptor, lines[written:])
        except OSError as e:
            if written:
                os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - written)
            raise self._error(e) from None

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._descriptor)

    def _error(self, e: OSError) -> StorageError:
        return StorageError(
            f"Records cannot be written to {self._path.parent}: {e.strerror}. What was finished before is kept there; "
            "free some space, then go on with --resume."
        )
