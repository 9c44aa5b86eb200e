"""A cell of a stranger's file → a number, or None.

Tolerant of form (``1,915.41``, ``406ms``, ``"550"``), strict in meaning: what is not wholly a number is no number.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

_NUMBER = r"[+-]?(?:(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_CELL = re.compile(rf"^[~≈]?(?P<number>{_NUMBER})\s*(?P<unit>[A-Za-z%µ/]*)[^\w.,%…-]*$")
_PLACEHOLDER = re.compile(r"^(?:[xX*#?_.,\-]*[xX?*_][xX*#?_.,\-]*|\.{2,}|…|<[^>]*>|N|TBD)\s*%?$")
_ABSENT = frozenset({"", "n/a", "na", "nan", "null", "none", "-", "–", "—", "not set"})  # noqa: RUF001  dashes of tables
_UNLIMITED = frozenset({"inf", "infinity", "+inf", "infinite"})
_DIGITS_MAX = 40
LARGEST = 1e15
"""No count, time or rate of a benchmark is larger."""
SMALLEST = 1e-30
"""And none but 0 is smaller: quotients of what is measured are finite."""


class Twice(msgspec.Struct, frozen=True):
    """A key that stands twice in one object, with different values: nobody can know which is meant."""

    first: Any
    last: Any


def number(value: object) -> float | None:
    """A finite number; a bool is none, and neither is ``inf``."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _finite(value)
    if isinstance(value, str):
        cell = split_unit(value)
        return cell[0] if cell and not cell[1] else None
    return None


def _finite(value: float) -> float | None:
    """Without the sign that a 0 may have."""
    try:
        exact = float(value) + 0.0
    except OverflowError:
        return None
    return exact if math.isfinite(exact) else None


def measurable(exact: float) -> bool:
    """Whether it may be a number of a benchmark at all."""
    return not exact or SMALLEST <= abs(exact) <= LARGEST


def measured(value: object) -> float | None:
    """A number that may be one of a benchmark."""
    exact = number(value)
    return exact if exact is not None and measurable(exact) else None


def split_unit(text: str) -> tuple[float, str] | None:
    """``"406ms"`` → (406.0, "ms"); ``"100%"`` → (100.0, "%"). None = no number."""
    found = _CELL.match(text.strip())
    if not found or len(found["number"]) > _DIGITS_MAX:
        return None
    value = _finite(float(found["number"].replace(",", "")))
    return None if value is None else (value, found["unit"])


def whole(value: object) -> int | None:
    """A count: not negative, no fraction."""
    exact = number(value)
    return int(exact) if exact is not None and 0 <= exact <= LARGEST and exact == int(exact) else None


def text(value: object) -> str | None:
    """A word that says something: ``""`` and Python's ``None`` do not, a user's own ``none`` does."""
    if not isinstance(value, str):
        return None
    told = value.strip()
    return told if told == "none" or told.lower() not in _ABSENT else None


def is_unlimited(value: object) -> bool:
    """``inf`` in its spellings."""
    if isinstance(value, str):
        return value.strip().lower() in _UNLIMITED
    return isinstance(value, float) and value == math.inf


def is_absent(value: object) -> bool:
    """The file itself says that it does not know."""
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or (isinstance(value, str) and value.strip().lower() in _ABSENT)


def is_placeholder(value: object) -> bool:
    """``xxx.xx`` and its kin: a template's blank."""
    return isinstance(value, str) and len(value) < _DIGITS_MAX and bool(_PLACEHOLDER.match(value.strip()))


def mapping(value: object) -> Mapping[str, Any]:
    """An object of the file; an empty one where there is none."""
    return value if isinstance(value, Mapping) else {}


def scaled(value: object, scale: float) -> float | None:
    """A number in another unit."""
    exact = number(value)
    return None if exact is None else exact * scale


def plain(words: str) -> str:
    """On one line, without control characters: what a stranger wrote must not act on a terminal."""
    return "".join(c for c in " ".join(words.split()) if c.isprintable())
