"""Numbers as people read them: few digits, thousands set apart, unknown as a dash."""

from withstand.metrics import rounding

UNKNOWN = "–"  # noqa: RUF001 - an en dash, as tables have it


def number(value: float | None) -> str:
    """``0.34  41.20  412.6  4,126``."""
    return UNKNOWN if value is None else rounding.number(value)


def at_most(value: float) -> str:
    """``≤ 0.13``: a bound is never rounded down."""
    return f"≤ {rounding.raised(value)}"


def count(value: int | None) -> str:
    """``12,345``."""
    return UNKNOWN if value is None else f"{value:,}"


def plain(value: float | None) -> str:
    """A number that someone has set: ``8``, ``0.25``, with no digits that he did not write."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value == int(value) else f"{value:,.6g}"


def percent(share: float | None) -> str:
    """``99.9 %``: only all is 100 %."""
    return UNKNOWN if share is None else rounding.percent(share)


def seconds(value: float | None) -> str:
    """``0.89 s``, ``42 s``, ``3 min 05 s``."""
    if value is None:
        return UNKNOWN
    if value < 10:
        return f"{value:.2f} s"
    whole = round(value)
    return f"{whole} s" if whole < 60 else f"{whole // 60:,} min {whole % 60:02} s"


def counted(n: int, noun: str) -> str:
    """``1 stage``, ``1,234 requests``."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
