"""How late we read what had come, counted."""

from array import array
from collections.abc import Iterator

from withstand.record import Spread

FINE_BITS = 10
_FINE = 1 << 14
_SUB_BUCKETS = 16
_SUB_BITS = 4


class LagHistogram:
    """Counts of ns values: by the microsecond (1,024 ns) up to 16 ms, above in buckets of at most 6 % width.

    Flat memory however many are added.
    """

    __slots__ = ("_coarse", "_max_ns", "fine")

    def __init__(self) -> None:
        self.fine = array("q", bytes(8 * _FINE))
        self._coarse = [0] * (64 * _SUB_BUCKETS)
        self._max_ns = 0

    def add(self, value_ns: int) -> None:
        """One value, at least 0."""
        index = value_ns >> FINE_BITS
        if index < _FINE:
            self.fine[index] += 1
        else:
            shift = value_ns.bit_length() - _SUB_BITS - 1
            self._coarse[shift * _SUB_BUCKETS + (value_ns >> shift)] += 1
            self._max_ns = max(self._max_ns, value_ns)

    @property
    def n(self) -> int:
        """How many were added."""
        return sum(self.fine) + sum(self._coarse)

    def spread(self) -> Spread | None:
        """Median, p99 and maximum; each is its bucket's upper end, but a maximum above 16 ms is exact."""
        n = self.n
        return Spread(n=n, p50_ns=self._at(n / 2), p99_ns=self._at(n * 0.99), max_ns=self._at(n)) if n else None

    def _at(self, rank: float) -> int:
        for upper_ns, count in self._buckets():
            rank -= count
            if count and rank <= 0:
                return upper_ns
        return self._max_ns

    def _buckets(self) -> Iterator[tuple[int, int]]:
        """(Upper end, count), rising."""
        for index, count in enumerate(self.fine):
            yield ((index + 1) << FINE_BITS) - 1, count
        for index, count in enumerate(self._coarse):
            yield min(_upper_end(index), self._max_ns), count


def _upper_end(index: int) -> int:
    """The largest value of a bucket. Bucket ``shift * 16 + m`` holds values whose top bits are m, 16 <= m < 32."""
    shift = max(index // _SUB_BUCKETS - 1, 0)
    top = index - shift * _SUB_BUCKETS
    return ((top + 1) << shift) - 1
