"""How far a percentile can be wrong when its values are: from their ends, and from how many are off by how much.

A percentile rises with each of its values, so it lies between that of all lower and that of all upper ends. Where it
is not known which values are off, but how many, the ranks tell: ``count`` values, however wrong, move an order
statistic by at most ``count`` places. It knows no units.
"""

from collections.abc import Iterator
from itertools import product

import msgspec

from withstand.metrics.quantiles import percentile
from withstand.metrics.sample import Sample


class Fuzz(msgspec.Struct, frozen=True):
    """How far values may be off to one side: any by ``rest``, and ``count`` of them by up to ``most`` besides."""

    rest: float = 0
    count: int = 0
    most: float = 0

    @property
    def more(self) -> float:
        """What ``most`` comes to: nothing, where it is that of no value."""
        return self.most if self.count else 0

    def times(self, share: float) -> "Fuzz":
        """As it is felt in a part of the value."""
        return Fuzz(self.rest * share, self.count, self.most * share)

    def of_mean(self, n: int) -> float:
        """By how much the mean of n values may be off."""
        return self.rest + self.most * min(1.0, self.count / n)


class Ends(msgspec.Struct, frozen=True):
    """The values as they are shown, and where they can lie: between two ends, and beyond these by some fuzz."""

    shown: Sample
    low: Sample
    high: Sample
    below: tuple[Fuzz, ...] = ()
    above: tuple[Fuzz, ...] = ()

    def off_mean(self) -> float:
        """By how much the shown mean may be wrong at most."""
        shown = self.shown.mean()
        least = self.low.mean() - sum(fuzz.of_mean(len(self.low)) for fuzz in self.below)
        most = self.high.mean() + sum(fuzz.of_mean(len(self.high)) for fuzz in self.above)
        return max(0.0, shown - least, most - shown)

    def off(self, share: float) -> float:
        """By how much the shown percentile at ``share`` of 0 … 1 may be wrong at most."""
        shown = percentile(self.shown, share)
        least = max(_at(self.low, share - places) - off for places, off in _ways(self.below, len(self.low), share))
        most = min(_at(self.high, share + places) + off for places, off in _ways(self.above, len(self.high), 1 - share))
        return max(0.0, shown - least, most - shown)


def _at(sample: Sample, share: float) -> float:
    return percentile(sample, min(1.0, max(0.0, share)))


def _ways(fuzzes: tuple[Fuzz, ...], n: int, room: float) -> Iterator[tuple[float, float]]:
    """(Share of places, error): of each fuzz either its values change places, or every value is off by its most.

    There must be room for the places.
    """
    rest = sum(fuzz.rest for fuzz in fuzzes)
    for moved in product((False, True), repeat=len(fuzzes)):
        pairs = list(zip(fuzzes, moved, strict=True))
        places = sum(fuzz.count for fuzz, moves in pairs if moves) / max(1, n - 1)
        if places <= room or not places:
            yield places, rest + sum(fuzz.more for fuzz, moves in pairs if not moves)
