"""Which load comes next, until the largest that keeps its promises is known: doubling or halving, then bisection.

A load that stays open lies so near to the limit that the time given to a probe does not tell: the search goes on to
both sides of it. Above one that is open because of our own client nothing is tried: there we would measure ourselves.
It knows no servers, only what each load has been found to do.
"""

import math
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from withstand.control.certainty import CHANCE
from withstand.control.probe import Look, Probed, Standing
from withstand.control.repair import latest
from withstand.control.share import Share
from withstand.spec import Promise

_FAR, _NEAR = 2.0, 1.25
_LITTLE = 10.0
"""Independent requests. By fewer a load may be broken that is not, where one answer in a hundred takes very long."""


class Axis(StrEnum):
    """What is searched."""

    RATE = "rate"
    CONCURRENCY = "concurrency"


class Bracket(msgspec.Struct, frozen=True):
    """Between which loads the limit lies; None = no load is known beyond it."""

    low: float | None
    high: float | None


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of it."""

    axis: Axis = Axis.RATE
    promises: tuple[Promise, ...]
    start: float
    """The first load."""
    precision: float = 0.05
    """It is over when the upper end of the bracket is so much above the lower one, as a share of it."""
    least: float = 1e-3
    most: float = 1e6

    def next(self, probed: Sequence[Probed]) -> float | None:
        """The load to try next; None = it is over."""
        if not probed:
            return self._rounded(self.start)
        for step in (_met_cold, self._further, self._hangs_by_little):
            if (load := step(probed)) is not None:
                return load
        return None

    def _further(self, tried: Sequence[Probed]) -> float | None:
        probed = latest(tried)
        low, high = msgspec.structs.astuple(bracket_of(probed))
        wall = min((p.load for p in probed if p.look.doubt), default=None)
        beyond = wall if high is None else high
        if beyond is None:
            top = max(probed, key=lambda p: p.load)
            return self._outward(top.load, _NEAR if self._leans(top, kept=False) else _FAR)
        if low is None:
            return self._downward(beyond, probed)
        return self._between(low, beyond, probed, _NEAR - 1 if high is None else self.precision)

    def _downward(self, high: float, probed: Sequence[Probed]) -> float | None:
        bottom = min(probed, key=lambda p: p.load)
        if not self._leans(bottom, kept=True):
            return self._outward(bottom.load, 1 / _FAR)
        if self._could_not_tell(bottom.look):
            return self._between(bottom.load, high, probed, self.precision)
        return self._outward(bottom.load, 1 / _NEAR)

    def _hangs_by_little(self, probed: Sequence[Probed]) -> float | None:
        """The upper end, where a single clump of requests has broken it: it is tried once more."""
        high = bracket_of(latest(probed)).high
        looks = [p.look for p in probed if p.load == high]
        if len(looks) != 1 or (promise := looks[0].promise) not in self.promises:
            return None
        share = looks[0].share(self.promises.index(promise))
        return high if share and share.of < _LITTLE else None

    def _leans(self, one: Probed, *, kept: bool) -> bool:
        """An open load that looks as if it kept its promises, or broke them: the end is not far."""
        return one.look.standing is Standing.OPEN and self._seems_kept(one.look) is kept

    def _could_not_tell(self, look: Look) -> bool:
        """So few came in its time that nothing would have shown: a lower load would tell even less."""
        pairs = zip(look.shares, self.promises, strict=False)
        return any(share is None or Share(0, share.of).below(1 - promise.share) > CHANCE for share, promise in pairs)

    def _seems_kept(self, look: Look) -> bool:
        pairs = zip(look.shares, self.promises, strict=False)
        return all(share is None or share.value <= 1 - promise.share for share, promise in pairs)

    def _outward(self, load: float, factor: float) -> float | None:
        outer = self._rounded(min(max(load * factor, self.least), self.most))
        return outer if outer != load else None

    def _between(self, low: float, high: float, probed: Sequence[Probed], precision: float) -> float | None:
        """In the middle, or, of a stretch that stays open there, on either side of it."""
        open_ones = sorted(p.load for p in probed if p.look.standing is Standing.OPEN and low < p.load < high)
        edges = [(low, open_ones[0]), (open_ones[-1], high)] if open_ones else [(low, high)]
        tried = {p.load for p in probed}
        for below, above in edges:
            middle = self._rounded(math.sqrt(below * above))
            if above > below * (1 + precision) and middle not in tried and below < middle < above:
                return middle
        return None

    def _rounded(self, load: float) -> float:
        """Whole where it counts users, else to three digits, as one would say it."""
        return float(max(1, round(load))) if self.axis is Axis.CONCURRENCY else float(f"{load:.3g}")


def _met_cold(probed: Sequence[Probed]) -> float | None:
    """A load that broke before any had held, next above the first that holds: the server may have been cold."""
    first = next((place for place, p in enumerate(probed) if p.holds), None)
    if first is None:
        return None
    after = {p.load for p in probed[first:]}
    known = min((p.load for p in latest(probed) if p.breaks and p.load in after), default=math.inf)
    broke = [p.load for p in probed[:first] if p.breaks and p.load > probed[first].load and p.load not in after]
    return min((load for load in broke if load < known), default=None)


def bracket_of(probed: Sequence[Probed]) -> Bracket:
    """Where loads contradict each other (one breaks below one that holds), the bracket spans both of them."""
    holding = [p.load for p in probed if p.holds]
    breaking = [p.load for p in probed if p.breaks]
    lows = [load for load in holding if load < min(breaking, default=math.inf)]
    highs = [load for load in breaking if load > max(holding, default=0.0)]
    return Bracket(max(lows, default=None), min(highs, default=None))
