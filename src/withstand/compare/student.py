"""Student's t: its distribution and its points, for any freedom > 0.

By the incomplete beta function's continued fraction (Numerical Recipes 6.4), since the core has no numerical library.
"""

import math

_STEPS_MAX = 300
_ENOUGH = 1e-12
_TINY = 1e-300


def two_sided(t: float, freedom: float) -> float:
    """The chance of a value at least as far from 0 as ``t``; with infinite freedom that of the normal distribution."""
    if math.isinf(freedom):
        return math.erfc(abs(t) / math.sqrt(2))
    return beta_share(freedom / (freedom + t * t), freedom / 2, 0.5)


def point(confidence: float, freedom: float) -> float:
    """The t that |T| stays below with this confidence (0 … 1)."""
    low, high = 0.0, 1.0
    while two_sided(high, freedom) > 1 - confidence:
        low, high = high, high * 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided(middle, freedom) > 1 - confidence else (low, middle)
    return high


def beta_share(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b): the chance that a Beta(a, b) is x at most."""
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _fraction(x, a, b) / a
    return 1 - math.exp(log_front) * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """Lentz's evaluation of the continued fraction."""
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _STEPS_MAX):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = value
        for term in (even, odd):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            value *= c * d
        if abs(value - before) < _ENOUGH * abs(value):
            break
    return value


def _away(number: float) -> float:
    """Not 0."""
    return number if abs(number) > _TINY else _TINY
