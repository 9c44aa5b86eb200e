"""The difference of two means whose spreads differ (Welch 1947, with Satterthwaite's degrees of freedom). Pure."""

import math
from typing import NamedTuple


class Mean(NamedTuple):
    """How sure one is: its standard error, and the error's degrees of freedom."""

    error: float
    freedom: float


def welch(one: Mean, other: Mean) -> Mean:
    """Of their difference."""
    a, b = one.error**2, other.error**2
    if a + b == 0:
        return Mean(0.0, math.inf)
    return Mean(math.sqrt(a + b), (a + b) ** 2 / (a**2 / one.freedom + b**2 / other.freedom))
