"""Where the steady state begins: MSER-5 (White 1997), which cuts as much of the start as makes the rest's mean surest.

Of the means of five values each it leaves out the first d, with the d that minimises the variance of the others over
their number. Where that is more than half of them there is no steady state yet.
"""

import math
from collections.abc import Sequence

_BATCH = 5


def steady_from(values: Sequence[float]) -> int | None:
    """The index of the first value of the steady state; None = it is not reached, or there are too few to say."""
    means = [math.fsum(values[i : i + _BATCH]) / _BATCH for i in range(0, len(values) - _BATCH + 1, _BATCH)]
    if len(means) < 2 * _BATCH:
        return None
    best = min(enumerate(_unsureness(means)), key=lambda pair: pair[1])[0]
    return best * _BATCH if best < len(means) // 2 else None


def _unsureness(means: Sequence[float]) -> list[float]:
    """For each d: the squares around the mean of those from d on, over their number squared. The last few count not."""
    total, squares, found = 0.0, 0.0, []
    centre = means[-1]  # shifted, so that large values lose no digits
    for n, value in enumerate(reversed(means), start=1):
        total += value - centre
        squares += (value - centre) ** 2
        found.append(max(0.0, squares - total * total / n) / (n * n))
    found.reverse()
    return found[: len(found) - _BATCH]
