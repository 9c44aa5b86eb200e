"""Long sorted runs of numbers on disk: memory holds what is looked at, for as long as it is looked at.

They lie in a folder that its owner removes. Pickled, a run is its place on disk: what one process has put there,
another reads.
"""

import mmap
from collections.abc import Sequence
from pathlib import Path

import msgspec

from withstand.errors import StorageError
from withstand.metrics.sample import Numbers


class ShelvedRun(msgspec.Struct, frozen=True):
    """One run."""

    path: str
    typecode: str
    length: int

    def __len__(self) -> int:
        return self.length

    def view(self) -> Sequence[float]:
        """All values, mapped into memory until the last reference to the result has gone."""
        with Path(self.path).open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        values: Sequence[float] = memoryview(mapped).cast(self.typecode)  # type: ignore[call-overload]  # an array's
        return values


class Shelf:
    """Where one process puts its runs."""

    def __init__(self, room: Path, name: str) -> None:
        self._room = room
        self._name = name
        self._runs = 0

    def keep(self, values: Numbers) -> ShelvedRun:
        """Put a run there.

        Raises:
            StorageError: there is no room.
        """
        self._runs += 1
        path = self._room / f"{self._name}-{self._runs}.run"
        try:
            with path.open("wb") as file:
                values.tofile(file)
        except OSError as e:
            raise StorageError(
                f"{self._room} has no room for a large run's numbers: {e.strerror}. Free some space, or set TMPDIR."
            ) from None
        return ShelvedRun(str(path), values.typecode, len(values))
