"""Numbers that belong together in pieces, such as the gaps of one answer: each piece sorted, one after another.

Long runs of whole pieces may be kept elsewhere, so that they take no memory. How long each piece is, the owner knows.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Self

from withstand.metrics.sample import Keep, Kept, Numbers, packed

_RUN_LENGTH = 1 << 19


class Pieces:
    """Whole numbers, piece by piece."""

    __slots__ = ("_keep", "_open", "_runs")

    def __init__(self, keep: Keep | None = None) -> None:
        self._keep = keep
        self._open = array("q")
        self._runs: list[Numbers | Kept] = []

    def add(self, piece: Sequence[int]) -> None:
        """One more."""
        self._open.extend(sorted(piece))
        if len(self._open) >= _RUN_LENGTH:
            self._seal(self._keep)

    def merge(self, other: Self) -> None:
        """The pieces of another after these; nothing is copied."""
        self._seal(None)
        other._seal(None)
        self._runs += other._runs

    def _seal(self, keep: Keep | None) -> None:
        """What is shorter than a run ought to be is not worth keeping elsewhere."""
        if self._open:
            values = packed(self._open, "q")
            self._runs.append(values if keep is None else keep(values))
            self._open = array("q")

    def above(self, lengths: Sequence[int], limits: Sequence[float]) -> list[Sequence[int]]:
        """For each limit how many values of each piece are above it; ``lengths`` are those of the pieces added."""
        found = [array("q") for _ in limits]
        views = self._views()
        view, begin = next(views, ()), 0
        for length in lengths:
            if length and begin == len(view):
                view, begin = next(views), 0
            end = begin + length
            for counts, limit in zip(found, limits, strict=True):
                counts.append(end - bisect_right(view, limit, begin, end))
            begin = end
        return list(found)

    def _views(self) -> Iterator[Sequence[float]]:
        for run in self._runs:
            yield run if isinstance(run, array) else run.view()
        yield self._open
