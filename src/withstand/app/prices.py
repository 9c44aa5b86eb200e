"""What was typed of prices: of an hour, one for all sides or one for each that is named, and of tokens elsewhere."""

import math
from collections.abc import Mapping, Sequence

import msgspec

from withstand.errors import UsageError
from withstand.spec import TokenPrice
from withstand.spec.price import MONEY_MAX, MONEY_MIN

_OPTION = "--price-per-hour"
_TOKENS = ("input", "output", "cached_input")


def prices_of(words: Sequence[str], told: Mapping[str, float | None]) -> dict[str, float]:
    """``["2.5"]`` or ``["a=2.5", "b=4"]``, by label; ``told`` has every side, and what its own plan says.

    A named price wins over the one for all, and that over the plan's. A side without any has none.

    Raises:
        UsageError: no price, or of a side that there is not.
    """
    prices = {label: price for label, price in told.items() if price is not None}
    named = [word.rpartition("=") for word in words]
    for label, equals, text in sorted(named, key=lambda parts: bool(parts[1])):
        if equals and label not in told:
            raise UsageError(f"{_OPTION} {label}={text}: there is no side {label!r}, only {', '.join(told)}.")
        prices |= dict.fromkeys([label] if equals else told, price_of(text))
    return prices


def price_of(text: str) -> float:
    """A price of an hour.

    Raises:
        UsageError: it is none.
    """
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not MONEY_MIN <= price <= MONEY_MAX:
        raise UsageError(f"{_OPTION} {text}: a price is a number above 0, up to {MONEY_MAX:g}, such as 2.5.")
    return price


def token_price_of(text: str) -> TokenPrice:
    """``0.15:0.60``, or with a price of cached input ``0.15:0.60:0.075``: of a million tokens.

    Raises:
        UsageError: it is none.
    """
    parts = text.split(":")
    try:
        if 2 <= len(parts) <= len(_TOKENS):
            return msgspec.convert(dict(zip(_TOKENS, map(float, parts), strict=False)), TokenPrice)
    except (ValueError, msgspec.ValidationError):
        pass
    raise UsageError(
        f"--against-token-price {text}: give what a million input and output tokens cost, such as 0.15:0.60, and if it "
        "has one the price of cached input, 0.15:0.60:0.075."
    )
