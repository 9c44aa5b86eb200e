"""Many numbers of one metric in little memory, and exact order statistics of them.

Values are kept as 8-byte machine numbers in sorted runs, never as lists of Python objects: ten million gaps take 80 MB.
An order statistic is found by bisecting all runs at once, so the runs need no merging. It knows no units.
"""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal

_RUN_LENGTH = 1 << 19
"""A run is sorted through a list of Python objects, which takes five times its room for a moment."""


class Sample:
    """A pile of numbers: ``q`` for ints of 64 bits, ``d`` for floats."""

    __slots__ = ("_open", "_runs", "_sealed_n", "_typecode")

    def __init__(self, typecode: Literal["q", "d"] = "q") -> None:
        self._typecode = typecode
        self._open: array[int] | array[float] = array(typecode)
        self._runs: list[array[int] | array[float]] = []
        self._sealed_n = 0

    @classmethod
    def union(cls, *samples: "Sample") -> "Sample":
        """All the values that they have now; nothing is copied."""
        union = cls()
        for sample in samples:
            union._runs += sample.runs
        union._sealed_n = sum(map(len, union._runs))
        return union

    @property
    def runs(self) -> Sequence["array[int] | array[float]"]:
        """All values, in runs that are sorted each."""
        self._seal()
        return self._runs

    def __len__(self) -> int:
        return self._sealed_n + len(self._open)

    def add(self, value: float | None) -> None:
        """One more; None = unknown, and is left out."""
        if value is not None:
            self.extend((value,))

    def extend(self, values: Iterable[float]) -> None:
        """Several more."""
        self._open.extend(values)  # type: ignore[arg-type]  # the caller keeps to the typecode
        if len(self._open) >= _RUN_LENGTH:
            self._seal()

    def _seal(self) -> None:
        if self._open:
            self._runs.append(array(self._typecode, sorted(self._open)))
            self._sealed_n += len(self._open)
            self._open = array(self._typecode)

    def ranked(self, rank: int) -> float:
        """The value with ``rank`` smaller or equal ones before it: 0 is the smallest, ``len - 1`` the largest."""
        assert 0 <= rank < len(self)
        self._seal()
        return self._runs[0][rank] if len(self._runs) == 1 else _select(self._runs, rank)

    def mean(self) -> float:
        """Of at least one value."""
        assert len(self)
        self._seal()
        return math.fsum(map(math.fsum, self._runs)) / len(self)

    def moments(self) -> tuple[float, float]:
        """Mean and the population's standard deviation; two passes, since one loses the digits of a small spread."""
        mean = self.mean()
        squares = math.fsum(math.fsum([(value - mean) ** 2 for value in run]) for run in self._runs)
        return mean, math.sqrt(squares / len(self))


def _select(runs: Sequence[Sequence[float]], rank: int) -> float:
    """The order statistic over sorted runs: a pivot from the widest open stretch closes at least half of that one."""
    low, high = [0] * len(runs), [len(run) for run in runs]
    while True:
        widest = max(range(len(runs)), key=lambda i: high[i] - low[i])
        pivot = runs[widest][(low[widest] + high[widest]) // 2]
        below = [bisect_left(run, pivot, *span) for run, *span in zip(runs, low, high, strict=True)]
        up_to = [bisect_right(run, pivot, *span) for run, *span in zip(runs, below, high, strict=True)]
        if rank < sum(below):
            high = below
        elif rank >= sum(up_to):
            low = up_to
        else:
            return pivot
