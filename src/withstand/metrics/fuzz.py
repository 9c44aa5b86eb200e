"""How far a percentile can be wrong when its values are: from their ends, and from how many are off by how much.

A percentile rises with each of its values, so it lies between that of all lower and that of all upper ends. Where it
is not known which values are off, but how many, the ranks tell: ``count`` values, however wrong, move an order
statistic by at most ``count`` places. It knows no units.
"""

import msgspec

from withstand.metrics.quantiles import percentile
from withstand.metrics.sample import Sample


class Fuzz(msgspec.Struct, frozen=True):
    """How far values may be off to one side: any by ``rest``, and ``count`` of them by up to ``most`` besides."""

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
    """The values as they are shown, and where they can lie: between two ends, and a fuzz beyond these."""

    shown: Sample
    low: Sample
    high: Sample
    below: Fuzz
    above: Fuzz

    def off_mean(self) -> float:
        """By how much the shown mean may be wrong at most."""
        shown = self.shown.mean()
        least = self.low.mean() - self.below.mean(len(self.low))
        most = self.high.mean() + self.above.mean(len(self.high))
        return max(0.0, shown - least, most - shown)

    def off(self, share: float) -> float:
        """By how much the shown percentile at ``share`` of 0 … 1 may be wrong at most."""
        shown = percentile(self.shown, share)
        return max(0.0, shown - self._least(share), self._most(share) - shown)

    def _least(self, share: float) -> float:
        """Either all are off by the most, or the worst have changed places."""
        fuzz, place = self.below, share - _places(self.below, self.low)
        every = percentile(self.low, share) - fuzz.rest - fuzz.more
        return every if place < 0 else max(every, percentile(self.low, place) - fuzz.rest)

    def _most(self, share: float) -> float:
        fuzz, place = self.above, share + _places(self.above, self.high)
        every = percentile(self.high, share) + fuzz.rest + fuzz.more
        return every if place > 1 else min(every, percentile(self.high, place) + fuzz.rest)


def _places(fuzz: Fuzz, sample: Sample) -> float:
    return fuzz.count / max(1, len(sample) - 1)
