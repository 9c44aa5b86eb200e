"""``--price-per-hour`` → prices by label: one for all sides, or one for each that is named."""

import math
from collections.abc import Sequence

from withstand.errors import UsageError

_OPTION = "--price-per-hour"


def prices_of(words: Sequence[str], labels: Sequence[str]) -> dict[str, float]:
    """``["2.5"]`` or ``["a=2.5", "b=4"]``; a named one wins over the one for all.

    Raises:
        UsageError: no price, or of a side that there is not.
    """
    named = [word.rpartition("=") for word in words]
    prices = {label: _price(text, word) for word, (_, equals, text) in zip(words, named, strict=True) if not equals
              for label in labels}  # fmt: skip
    for word, (label, equals, text) in zip(words, named, strict=True):
        if equals and label not in labels:
            raise UsageError(f"{_OPTION} {word}: there is no side {label!r}, only {', '.join(labels)}.")
        if equals:
            prices[label] = _price(text, word)
    return prices


def _price(text: str, word: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not 0 < price < math.inf:
        raise UsageError(f"{_OPTION} {word}: a price is a number above 0, such as 2.5, or LABEL=2.5 for one side.")
    return price
