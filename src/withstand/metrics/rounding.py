"""How a number is cut for reading: one rule for tables and for sentences, so that one fact never reads two ways."""

import math


def number(value: float) -> str:
    """``0.34  41.20  412.6  4,126``: two decimals below 100, one below 1,000, then none."""
    return f"{value:z,.{decimals(value)}f}"


def raised(value: float) -> str:
    """The same of a bound, which is never rounded down."""
    unit = 10.0 ** decimals(value)
    return number(math.ceil(value * unit - 1e-9) / unit)


def decimals(value: float) -> int:
    """Behind the point."""
    return 2 if abs(value) < 99.995 else 1 if abs(value) < 999.95 else 0


def percent(part: float, whole: float = 1) -> str:
    """``12.5 %``; never rounded up to all or down to nothing. ``whole`` is not 0."""
    share = part / whole
    if 0 < share < 0.001:
        return "under 0.1 %"
    if 0.999 < share < 1:
        return "over 99.9 %"
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def whole_percent(share: float) -> str:
    """``83 %``: where there is no room for more, as in bars; never rounded up to all."""
    return f"{math.floor(100 * share + 1e-9)} %"


def counted(n: int, noun: str) -> str:
    """``1 stage``, ``1,234 requests``."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
