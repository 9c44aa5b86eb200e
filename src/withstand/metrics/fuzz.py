"""How far a percentile can be wrong when its values are: from their ends, and from how many are off by how much.

A percentile rises with each of its values, so it lies between that of all lower and that of all upper ends. Where it
is not known which values are off, but how many, the ranks tell: ``count`` values, however wrong, move an order
statistic by at most ``count`` places. It knows no units.
"""

import msgspec

from withstand.metrics.quantiles import percentile
from withstand.metrics.sample import Sample


class Fuzz(msgspec.Struct, frozen=True):
    """An error to either side: ``rest`` of any value, but up to ``most`` of ``count`` of them."""

    rest: float = 0
    count: int = 0
    most: float = 0

    def __add__(self, other: "Fuzz") -> "Fuzz":
        """Both at once."""
        return Fuzz(self.rest + other.rest, self.count + other.count, self.more + other.more)

    @property
    def more(self) -> float:
        """What ``most`` comes to: nothing, where it is that of no value."""
        return self.most if self.count else 0

    def times(self, share: float) -> "Fuzz":
        """As it is felt in a part of the value."""
        return Fuzz(self.rest * share, self.count, self.most * share)

    def mean(self, n: int) -> float:
        """Of the mean of n values."""
        return self.rest + self.most * min(1.0, self.count / n)


class Ends(msgspec.Struct, frozen=True):
    """The values as they are shown, and where they can lie."""

    shown: Sample
    low: Sample
    high: Sample
    fuzz: Fuzz

    def off_mean(self) -> float:
        """By how much the shown mean may be wrong at most."""
        shown = self.shown.mean()
        return max(0.0, shown - self.low.mean(), self.high.mean() - shown) + self.fuzz.mean(len(self.low))

    def off(self, share: float) -> float:
        """By how much the shown percentile at ``share`` of 0 … 1 may be wrong at most."""
        shown = percentile(self.shown, share)
        return max(0.0, shown - self._least(share), self._most(share) - shown)

    def _least(self, share: float) -> float:
        every = percentile(self.low, share) - self._any
        place = share - self._shift(self.low)
        return every if place < 0 else max(every, percentile(self.low, place) - self.fuzz.rest)

    def _most(self, share: float) -> float:
        every = percentile(self.high, share) + self._any
        place = share + self._shift(self.high)
        return every if place > 1 else min(every, percentile(self.high, place) + self.fuzz.rest)

    @property
    def _any(self) -> float:
        """What no value can be off by more than."""
        return self.fuzz.rest + self.fuzz.more

    def _shift(self, sample: Sample) -> float:
        return self.fuzz.count / max(1, len(sample) - 1)
