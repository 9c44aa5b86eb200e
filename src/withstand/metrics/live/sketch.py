"""Many numbers in little memory, for a look while they come: counts in buckets of equal relative width.

A quantile is off by 1.6 % at most (half a bucket of 2^(1/22)). Exact ones are made when a stage is over, by ``Sample``.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Self

_AN_OCTAVE = 22
_LEAST = 1.0


class Sketch:
    """Values above 0, in any unit in which less than 1 is nothing; at most some 1,400 buckets for 64 bits."""

    __slots__ = ("_counts", "_median", "_median_n", "n")

    def __init__(self) -> None:
        self.n = 0
        self._counts: Counter[int] = Counter()
        self._median: float | None = None
        self._median_n = 0

    def put(self, buckets: Sequence[int]) -> None:
        """Several more, by their buckets."""
        self.n += len(buckets)
        self._counts.update(buckets)

    def merge(self, other: Self) -> None:
        """All that another has."""
        self.n += other.n
        self._counts.update(other._counts)

    def median(self) -> float | None:
        """Kept until more is added: a course is looked at again and again."""
        if self._median_n != self.n:
            self._median_n = self.n
            self._median = self.quantiles((0.5,))[0]
        return self._median

    def mean(self) -> float | None:
        """None where nothing was added."""
        return math.fsum(count * _middle(bucket) for bucket, count in self._counts.items()) / self.n if self.n else None

    def quantiles(self, shares: Sequence[float]) -> list[float | None]:
        """At shares of 0 to 1, between two neighbours as in the report; None where nothing was added."""
        if not self.n:
            return [None] * len(shares)
        buckets, counts = zip(*sorted(self._counts.items()), strict=True)
        ends = list(accumulate(counts))

        def ranked(rank: int) -> float:
            return _middle(buckets[bisect_right(ends, rank)])

        found: list[float | None] = []
        for share in shares:
            place = share * (self.n - 1)
            low = ranked(math.floor(place))
            found.append(low + (ranked(math.ceil(place)) - low) * (place % 1))
        return found


def bucket_of(value: float) -> int:
    """Where a value counts."""
    return math.floor(math.log2(max(value, _LEAST)) * _AN_OCTAVE)


def _middle(bucket: int) -> float:
    return float(2 ** ((bucket + 0.5) / _AN_OCTAVE))
