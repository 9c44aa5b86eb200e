"""Numbers that all workers of a gateway see: memory that they share, without a lock for whoever counts.

Each worker writes only cells of its own, and what there is in all is their sum; so two that count at once lose nothing.
A few cells of a row belong to nobody: who writes last is right, or nearly so.
"""

import contextlib
import fcntl
import hashlib
import mmap
import tempfile
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path

_ROWS = 4096
_WORD = 8
_NUMBERS = 7
"""The name's hash, and numbers that belong to nobody."""
_NOTE = 20
"""Words of memory for a sentence."""
_COMMON = _NUMBERS + 2 * _NOTE


class Cell(IntEnum):
    """What a worker counts in a row."""

    UNDER_WAY = 0
    HELD_NUSD = 1
    REQUESTS = 2
    TOKENS = 3


class Row:
    """One engine's, or one key's, as one worker sees it."""

    __slots__ = ("_first", "_words", "against", "checked", "due_s", "failures", "found", "ill", "said", "under_way",
                 "until_s")  # fmt: skip

    def __init__(self, words: memoryview, worker: int) -> None:
        self._words = words.cast("q")
        self._first = _COMMON + worker * len(Cell)
        self.under_way = self._words[self._first + Cell.UNDER_WAY :]
        """Its first is this worker's."""
        self.failures = self._words[1:2]
        self.until_s = words[2 * _WORD : 3 * _WORD].cast("d")
        self.against = self._words[3:4]
        self.ill = self._words[4:5]
        self.due_s = words[5 * _WORD : 6 * _WORD].cast("d")
        self.checked = self._words[6:7]
        self.said = words[_NUMBERS * _WORD : (_NUMBERS + _NOTE) * _WORD]
        """Of an engine: what was wrong with it for a request, in bytes; ``found``: for a check."""
        self.found = words[(_NUMBERS + _NOTE) * _WORD : _COMMON * _WORD]

    def add(self, cell: int, amount: int) -> None:
        """So much more of this worker's."""
        self._words[self._first + cell] += amount

    def put(self, cell: int, amount: int) -> None:
        """So much is this worker's."""
        self._words[self._first + cell] = amount

    def mine(self, cell: int) -> int:
        """This worker's."""
        return int(self._words[self._first + cell])

    def total(self, cell: int) -> int:
        """All workers'."""
        return sum(self._words[_COMMON + cell :: len(Cell)])


class Board:
    """Made before the workers, which inherit it; ``as_worker`` says which one looks."""

    def __init__(self, workers: int = 1) -> None:
        self._stride = (_COMMON + workers * len(Cell)) * _WORD
        self._memory = memoryview(mmap.mmap(-1, _ROWS * self._stride))
        self._lock = _nameless_file() if workers > 1 else None
        self._worker = 0

    def as_worker(self, number: int) -> None:
        """From now on this process counts there."""
        self._worker = number

    @property
    def speaks(self) -> bool:
        """Of what all see it is this worker that tells."""
        return self._worker == 0

    def row(self, name: str) -> Row:
        """The row of that name, whichever worker asks. Where there are too many, one that nobody else sees."""
        mark = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest()) + 1
        with self._alone():
            for probe in range(_ROWS):
                words = self._at((mark + probe) % _ROWS)
                marks = words.cast("q")
                if marks[0] in {0, mark}:
                    marks[0] = mark
                    return Row(words, self._worker)
        return private_row()

    def forget(self, worker: int) -> None:
        """It has died, and with it what it had under way."""
        first = (_COMMON + worker * len(Cell)) * _WORD
        nothing = bytes(len(Cell) * _WORD)
        for i in range(_ROWS):
            words = self._at(i)
            if words.cast("q")[0]:
                words[first : first + len(nothing)] = nothing

    def _at(self, i: int) -> memoryview:
        return self._memory[i * self._stride : (i + 1) * self._stride]

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Two workers must not take the same row for two names; who dies lets go of the lock."""
        if self._lock is None:
            yield
            return
        fcntl.lockf(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN)


def _nameless_file() -> int:
    """As long as somebody has it."""
    descriptor, name = tempfile.mkstemp(prefix="withstand-")
    Path(name).unlink()
    return descriptor


def private_row() -> Row:
    """One that is nobody else's."""
    return Row(memoryview(bytearray((_COMMON + len(Cell)) * _WORD)), 0)
