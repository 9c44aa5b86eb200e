"""Many numbers of one metric in little memory, and exact order statistics of them.

Values are kept as machine numbers in sorted runs, never as lists of Python objects; whole ones that fit take 4 bytes,
and a run may be kept elsewhere, so that it takes none. An order statistic is found by bisecting all runs at once: they
need no merging, and two samples are joined by putting their runs side by side. It knows no units and no files.
"""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from operator import mul
from typing import Literal, Protocol, Self, TypeAlias

_RUN_LENGTH = 1 << 19
"""A run is sorted through a list of Python objects, which takes ten times its room for a moment."""
_FEW = 256
"""So many open values are sorted sooner than bisected further."""
_SHORT_MAX = 1 << 32

Numbers: TypeAlias = "array[int] | array[float]"


class Kept(Protocol):
    """A sorted run that lies elsewhere."""

    def __len__(self) -> int:
        """How many values."""

    def view(self) -> Sequence[float]:
        """All of them, for as long as the result lives."""


Keep = Callable[[Numbers], Kept]
"""Takes a long run away."""


class _Run:
    """Sorted values, their sum, and the sum of their squared distances from their mean."""

    __slots__ = ("_values", "squares", "total")

    def __init__(self, values: Numbers, keep: Keep | None) -> None:
        self._values: Numbers | Kept = values if keep is None else keep(values)
        if values.typecode == "d":
            self.total: float = math.fsum(values)
            mean = self.total / len(values)
            self.squares = math.fsum([(value - mean) ** 2 for value in values])
        else:  # whole numbers of any size are exact: nothing is lost by one pass
            self.total = sum(values)
            self.squares = (len(values) * sum(map(mul, values, values)) - self.total**2) / len(values)

    def __len__(self) -> int:
        return len(self._values)

    def view(self) -> Sequence[float]:
        return self._values if isinstance(self._values, array) else self._values.view()


class Sample:
    """A pile of numbers: ``q`` for ints of 64 bits, ``d`` for floats."""

    __slots__ = ("_keep", "_open", "_runs", "_sealed_n", "_typecode")

    def __init__(self, typecode: Literal["q", "d"] = "q", keep: Keep | None = None) -> None:
        self._typecode = typecode
        self._keep = keep
        self._open: Numbers = array(typecode)
        self._runs: list[_Run] = []
        self._sealed_n = 0

    @classmethod
    def union(cls, *samples: "Sample") -> "Sample":
        """All the values that they have now; nothing is copied."""
        union = cls()
        for sample in samples:
            union.merge(sample)
        return union

    def merge(self, other: Self) -> None:
        """All the values that another has now besides; nothing is copied."""
        self._seal()
        other._seal()
        self._runs += other._runs
        self._sealed_n += other._sealed_n

    def __len__(self) -> int:
        return self._sealed_n + len(self._open)

    def add(self, value: float | None) -> None:
        """One more; None = unknown, and is left out."""
        if value is not None:
            self._open.append(value)  # type: ignore[arg-type]  # the caller keeps to the typecode
            if len(self._open) >= _RUN_LENGTH:
                self._seal()

    def extend(self, values: Iterable[float]) -> None:
        """Several more."""
        self._open.extend(values)  # type: ignore[arg-type]  # the caller keeps to the typecode
        if len(self._open) >= _RUN_LENGTH:
            self._seal()

    def _seal(self) -> None:
        """What is shorter than a run ought to be is not worth keeping elsewhere."""
        if self._open:
            keep = self._keep if len(self._open) >= _RUN_LENGTH else None
            self._runs.append(_Run(packed(sorted(self._open), self._typecode), keep))
            self._sealed_n += len(self._open)
            self._open = array(self._typecode)

    def ranked(self, rank: int) -> float:
        """The value with ``rank`` smaller or equal ones before it: 0 is the smallest, ``len - 1`` the largest."""
        return self.pair(rank)[0]

    def pair(self, rank: int) -> tuple[float, float]:
        """The values at a rank and at the next; after the largest it comes again."""
        assert 0 <= rank < len(self)
        self._seal()
        views = [run.view() for run in self._runs]
        if len(views) == 1:
            return views[0][rank], views[0][min(rank + 1, len(self) - 1)]
        return _pair(views, rank)

    def mean(self) -> float:
        """Of at least one value."""
        assert len(self)
        self._seal()
        return self._total() / len(self)

    def _total(self) -> float:
        totals = [run.total for run in self._runs]
        return math.fsum(totals) if self._typecode == "d" else sum(totals)

    def moments(self) -> tuple[float, float]:
        """Mean and the population's standard deviation: that of the runs, and of their means."""
        mean = self.mean()
        within = math.fsum(run.squares for run in self._runs)
        between = math.fsum(len(run) * (run.total / len(run) - mean) ** 2 for run in self._runs)
        return mean, math.sqrt((within + between) / len(self))


def packed(values: Sequence[float], typecode: str) -> Numbers:
    """As machine numbers, in half the room where whole ones fit."""
    is_short = typecode == "q" and min(values) >= 0 and max(values) < _SHORT_MAX
    return array("I" if is_short else typecode, values)


def _pair(runs: Sequence[Sequence[float]], rank: int) -> tuple[float, float]:
    """Order statistics over sorted runs: a pivot from the widest open stretch closes at least half of that one."""
    low, high = [0] * len(runs), [len(run) for run in runs]
    while sum(high) - sum(low) > _FEW:
        widest = max(range(len(runs)), key=lambda i: high[i] - low[i])
        pivot = runs[widest][(low[widest] + high[widest]) // 2]
        below = [bisect_left(run, pivot, *span) for run, *span in zip(runs, low, high, strict=True)]
        up_to = [bisect_right(run, pivot, *span) for run, *span in zip(runs, below, high, strict=True)]
        if rank < sum(below):
            high = below
        elif rank >= sum(up_to):
            low = up_to
        else:
            return pivot, pivot if rank + 1 < sum(up_to) else _first(runs, up_to, pivot)
    rest = sorted(value for run, *span in zip(runs, low, high, strict=True) for value in run[slice(*span)])
    place = rank - sum(low)
    return rest[place], rest[place + 1] if place + 1 < len(rest) else _first(runs, high, rest[place])


def _first(runs: Sequence[Sequence[float]], start: Sequence[int], default: float) -> float:
    """The smallest value from the given places on."""
    return min((run[i] for run, i in zip(runs, start, strict=True) if i < len(run)), default=default)
