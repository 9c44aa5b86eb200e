"""Numbers as people read them: few digits, thousands set apart, unknown as a dash."""

from collections.abc import Iterable

from withstand.metrics import rounding
from withstand.metrics.summary import Interval

counted = rounding.counted
UNKNOWN = "–"  # noqa: RUF001 - an en dash, as tables have it
MINUS = "\N{MINUS SIGN}"
_SLOW = 0.0995


def number(value: float | None) -> str:
    """``0.34  41.20  412.6  4,126``."""
    return UNKNOWN if value is None else rounding.number(value)


def per_second(value: float | None) -> str:
    """The same, and ``0.0061``: a slow server's rate is not rounded to nothing."""
    return f"{value:.3g}" if value is not None and 0 < value < _SLOW else number(value)


def decimals_of(values: Iterable[float | None]) -> int:
    """As many as the smallest of a column needs, so that its points stand below each other."""
    known = [abs(value) for value in values if value]
    return 4 if known and min(known) < _SLOW else rounding.decimals(min(known, default=0.0))


def fixed(value: float | None, decimals: int) -> str:
    """``18,107.32`` beside ``45.04``."""
    return UNKNOWN if value is None else f"{value:z,.{decimals}f}"


def signed_percent(value: float | None) -> str:
    """``+12.3 %``, with a minus that is as wide as the plus."""
    if value is None:
        return UNKNOWN
    text = f"{value:+,.{1 if abs(value) < 999.5 else 0}f} %"
    return text.replace("-", MINUS)


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


def money(value: float | None) -> str:
    """Three digits: a millionth of a small price is still a price."""
    return UNKNOWN if value is None else f"{value:.3g}"


def between(interval: Interval | None) -> str:
    """``0.98 to 1.13``; of money, or of what is counted in times."""
    if interval is None or interval.low is None or interval.high is None:
        return UNKNOWN
    return f"{money(interval.low)} to {money(interval.high)}"


def percent(share: float | None) -> str:
    """``99.9 %``: only all is 100 %."""
    return UNKNOWN if share is None else rounding.percent(share)


def brief_percent(share: float) -> str:
    """``< 0.1 %``: where there is no room for words."""
    return rounding.percent(share).replace("under", "<").replace("over", ">")


def seconds(value: float | None) -> str:
    """``0.89 s``, ``42 s``, ``3 min 05 s``."""
    if value is None:
        return UNKNOWN
    if value < 10:
        return f"{value:.2f} s"
    whole = round(value)
    return f"{whole} s" if whole < 60 else f"{whole // 60:,} min {whole % 60:02} s"


def utc(iso: str) -> str:
    """``2026-11-28T03:04:05Z`` → ``2026-11-28 03:04:05 UTC``."""
    return iso.replace("T", " ").replace("Z", " UTC")
