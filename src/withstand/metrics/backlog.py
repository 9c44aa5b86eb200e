"""Does a queue grow? By how many requests are on their way, at instants one after another. It knows only numbers.

The first requests find an empty server: until nearly all of them are over their number rises, whatever the server can
do. From then on it must rise over the whole and over the later half, and by more than chance makes of a queue that just
keeps up: a random walk is hardly ever four roots of its steps away from where it began.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from statistics import median

from withstand.metrics.flow import Flow
from withstand.metrics.trend import Growth, growth

_FEWEST = 20
"""Looks after the filling: with more, an overload that fills most of the time is not known before its probe is over."""
_PARTS = 10
_WALK = 4.0
_FILLED_SHARE = 0.95
_LOOKS = 200


def queue_growth(points: Sequence[tuple[int, int]], requests: int, took_ns: Sequence[int]) -> Growth | None:
    """None = none is sure. Of (instant, on their way) pairs, sorted by instant.

    ``requests`` were asked by then, or are over. ``took_ns``: how long they took, of those that are over, in the order
    in which they were asked; without any, none is told.
    """
    if not points or not took_ns:
        return None
    filled_ns = points[0][0] + filling_ns(took_ns)
    steady = [point for point in points if point[0] >= filled_ns]
    if len(steady) < _FEWEST or not _rises(steady):
        return None
    part = len(steady) // _PARTS
    early, late = (median(n for _, n in some) for some in (steady[:part], steady[-part:]))
    return Growth(early, late, sure=True) if late - early > _WALK * math.sqrt(requests + late) else None


def filling_ns(took_ns: Sequence[int]) -> int:
    """How long an empty server fills, by how long requests took, in the order in which they were asked; one at least.

    The earlier half of them tells: the later ones have waited in the queue that is in question.
    """
    first_ns = sorted(took_ns[: (len(took_ns) + 1) // 2])
    return first_ns[int(_FILLED_SHARE * len(first_ns))]


def _rises(points: Sequence[tuple[int, int]]) -> bool:
    found = [growth(part, _FEWEST // 2) for part in (points, points[len(points) // 2 :])]
    return all(one is not None and one.sure for one in found)


def growth_in(flow: Flow) -> Growth | None:
    """Of a stage that is over: from its first send to its last."""
    sent, left = sorted(flow.sent), sorted(flow.left)
    if not sent or len(sent) != len(left):
        return None  # what became of some is not known
    first_ns, last_ns = sent[0], sent[-1]
    took_ns = [over - at for at, over in sorted(zip(flow.sent, flow.left, strict=True)) if over <= last_ns]
    instants = [first_ns + (last_ns - first_ns) * i // _LOOKS for i in range(_LOOKS + 1)]
    points = [(at, bisect_right(sent, at) - bisect_right(left, at)) for at in instants]
    return queue_growth(points, len(sent), took_ns)
