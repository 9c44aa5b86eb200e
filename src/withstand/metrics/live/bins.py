"""What was over when: counts and sketches in bins of time. Of the last seconds, or of a whole stage in ever wider bins.

It knows instants, numbers and nothing of stages.
"""

from collections.abc import Iterable, Sequence
from typing import Self

import msgspec

from withstand.metrics.live.sketch import Sketch
from withstand.metrics.live.snapshot import METRICS

NS_PER_S = 1_000_000_000
_COUNTS = ("ended", "failed", "good", "output_tokens", "unread_ended", "unread_failed")


class Over(msgspec.Struct, frozen=True):
    """One request that is over, or several that were only counted."""

    ended: int = 0
    failed: int = 0
    good: int = 0
    output_tokens: int = 0
    unread_ended: int = 0
    unread_failed: int = 0
    buckets: tuple[tuple[str, Sequence[int]], ...] = ()
    """By metric, those of its values."""


class Bin:
    """What was over in one stretch of time."""

    __slots__ = (*_COUNTS, "sketches")

    def __init__(self) -> None:
        self.ended = self.failed = self.good = self.output_tokens = 0
        self.unread_ended = self.unread_failed = 0
        """Requests that were only counted, for there was no time to read them."""
        self.sketches = {name: Sketch() for name in METRICS}

    def put(self, over: Over) -> None:
        """One more."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(over, name))
        for name, buckets in over.buckets:
            self.sketches[name].put(buckets)

    def merge(self, other: Self) -> None:
        """What was over in another stretch."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name, sketch in self.sketches.items():
            sketch.merge(other.sketches[name])

    @property
    def all_ended(self) -> int:
        """Good answers, read or not."""
        return self.ended + self.unread_ended

    @property
    def all_failed(self) -> int:
        """The others."""
        return self.failed + self.unread_failed

    @property
    def all_tokens(self) -> float:
        """As many a request that was not read as one that was."""
        return self.output_tokens * self.all_ended / self.ended if self.ended else 0.0

    @property
    def good_share(self) -> float | None:
        """Of all that were read."""
        read = self.ended + self.failed
        return self.good / read if read else None


def together(bins: Iterable[Bin]) -> Bin:
    """One bin of all."""
    whole = Bin()
    for one in bins:
        whole.merge(one)
    return whole


class Recent:
    """The last seconds, each in a bin of its own."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._bins: dict[int, Bin] = {}

    def at(self, instant_ns: int) -> Bin:
        """The bin of an instant."""
        return self._bins.setdefault(instant_ns // NS_PER_S, Bin())

    def within(self, now_ns: int) -> Bin:
        """All that was over in the last whole seconds, and in the one that goes on."""
        last = now_ns // NS_PER_S
        self._bins = {second: kept for second, kept in self._bins.items() if last - self._seconds <= second}
        return together(kept for second, kept in self._bins.items() if second <= last)

    def length_s(self, now_ns: int, since_ns: int) -> float:
        """How long that is, of what began at an instant."""
        first_ns = (now_ns // NS_PER_S - self._seconds) * NS_PER_S
        return (now_ns - max(first_ns, since_ns)) / NS_PER_S


class Whole:
    """A stage from its start, in at most ``most`` bins: when they are full, two become one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.width_ns = NS_PER_S
        self.bins: list[Bin] = []

    def at(self, since_start_ns: int) -> Bin:
        """The bin of an instant, which lies after the start."""
        while (place := max(0, since_start_ns) // self.width_ns) >= self._most:
            self._widen()
        while len(self.bins) <= place:
            self.bins.append(Bin())
        return self.bins[place]

    def _widen(self) -> None:
        self.width_ns *= 2
        self.bins = [together(self.bins[i : i + 2]) for i in range(0, len(self.bins), 2)]
