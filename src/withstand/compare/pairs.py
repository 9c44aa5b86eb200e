"""Two sides that were measured in turn: the difference over pairs of blocks, without what drifts from block to block.

Each pair gives one log ratio. A drift adds to it where the baseline came first, and takes away where it came second:
both are fitted (the AB/BA crossover; Hills and Armitage 1979), and what is left is the error, with n - 2 degrees of
freedom. It knows no metrics.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec

from withstand.compare.difference import EQUAL, Pair, chance_of
from withstand.compare.estimate import Estimate
from withstand.compare.run import Turn
from withstand.compare.shape import Method

PAIRS_MIN = 3
FEW = f"fewer than {PAIRS_MIN} pairs do not tell how far chance moves them"
ONE_ORDER = "all pairs were measured in one order, so that a drift looks like a difference"
_ROUNDING = 1e-12


class Lead(msgspec.Struct, frozen=True):
    """A pair: its log ratio, and by how many places the side came after the baseline; negative = before."""

    log_ratio: float
    later: int


class Fitted(msgspec.Struct, frozen=True):
    """The difference, its standard error, and the error's degrees of freedom."""

    log_ratio: float
    error: float
    freedom: float


def fitted(leads: Sequence[Lead]) -> Fitted | None:
    """Without drift; None where the pairs cannot tell them apart: fewer than three, or all in one order."""
    n = len(leads)
    mean_later = math.fsum(lead.later for lead in leads) / max(n, 1)
    mean = math.fsum(lead.log_ratio for lead in leads) / max(n, 1)
    spread = math.fsum((lead.later - mean_later) ** 2 for lead in leads)
    if n < PAIRS_MIN or spread == 0:
        return None
    drift = math.fsum((lead.later - mean_later) * (lead.log_ratio - mean) for lead in leads) / spread
    left = [lead.log_ratio - mean - drift * (lead.later - mean_later) for lead in leads]
    variance = math.fsum(rest * rest for rest in left) / (n - 2)
    error = math.sqrt(variance * (1 / n + mean_later**2 / spread))
    size = max(abs(lead.log_ratio) for lead in leads)
    return Fitted(mean - drift * mean_later, error if error > _ROUNDING * size else 0.0, float(n - 2))


def pair_of_turns(baseline: Mapping[Turn, Estimate], side: Mapping[Turn, Estimate]) -> Pair:
    """From the blocks of both; one whose partner is missing is left out."""
    partners = {turn.pair: (turn, estimate) for turn, estimate in side.items()}
    both = [(turn, own, *partners[turn.pair]) for turn, own in baseline.items() if turn.pair in partners]
    runs = (len(both), len(both))
    if not all(own.value > 0 and other.value > 0 for _, own, _, other in both):
        return Pair(method=Method.NONE, log_ratio=None, lack="a value is 0, so there is no ratio", runs=runs)
    leads = [Lead(math.log(other.value / own.value), after.place - turn.place) for turn, own, after, other in both]
    found = fitted(leads)
    if found is None:
        mean = math.fsum(lead.log_ratio for lead in leads) / len(leads) if leads else None
        return Pair(method=Method.PAIRS, log_ratio=mean, lack=FEW if len(leads) < PAIRS_MIN else ONE_ORDER, runs=runs)
    if found.error == 0 and found.log_ratio != 0:
        return Pair(method=Method.PAIRS, log_ratio=found.log_ratio, lack=EQUAL, runs=runs)
    chance = chance_of(found.log_ratio, found.error, found.freedom)
    return Pair(
        method=Method.PAIRS,
        log_ratio=found.log_ratio,
        error=found.error,
        freedom=found.freedom,
        chance=chance,
        runs=runs,
    )
