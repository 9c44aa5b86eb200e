"""Does something grow with time? A rank test over ten blocks: one slow request, or a long tail, moves it little.

Requests that follow each other share a queue and are not independent; the medians of ten blocks nearly are. Kendall's
S of ten has 45 at most; 29 or more comes by chance in 1 of 200 cases. It knows only numbers.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import msgspec

_BLOCKS = 10
_SURE = 29
FEWEST = 3 * _BLOCKS
"""A block's median is then of three at least."""
_MATERIAL = 1.1
_FILL_SHARE_MAX = 1 / 3


class Growth(msgspec.Struct, frozen=True):
    """Medians of the first and of the last three blocks, and whether the rise between them is one."""

    early: float
    late: float
    sure: bool


def growth(points: Sequence[tuple[int, int]], fewest: int = FEWEST) -> Growth | None:
    """Of (instant, time) pairs sorted by instant, in the same unit; None where there are too few to say.

    The first requests find an empty server: as many as fill it (those of the first typical time) are left out.
    """
    steady = _without_filling(points)
    if len(steady) < max(fewest, _BLOCKS):
        return None
    blocks = _blocks([value for _, value in steady])
    early, late = median(blocks[:3]), median(blocks[-3:])
    return Growth(early=early, late=late, sure=_kendall_s(blocks) >= _SURE and late > _MATERIAL * early)


def _without_filling(points: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    if len(points) < FEWEST:
        return points
    start, span = points[0][0], points[-1][0] - points[0][0]
    typical = median(value for _, value in points[: len(points) // _BLOCKS])
    filled = start + min(typical, span * _FILL_SHARE_MAX)
    return [point for point in points if point[0] >= filled]


def _blocks(values: Sequence[int]) -> list[float]:
    edges = [len(values) * i // _BLOCKS for i in range(_BLOCKS + 1)]
    return [median(values[low:high]) for low, high in pairwise(edges)]


def _kendall_s(values: Sequence[float]) -> int:
    """Pairs that rise minus pairs that fall."""
    pairs = [(a, b) for i, a in enumerate(values) for b in values[i + 1 :]]
    return sum((b > a) - (b < a) for a, b in pairs)
