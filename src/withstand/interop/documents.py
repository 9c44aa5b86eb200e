"""A text → the JSON values in it, wherever they stand: a whole file, lines, or lines of a log. Pure.

Python's own parser is used on purpose: peers write bare ``Infinity`` and ``NaN``, which strict parsers refuse.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from withstand.interop.values import Twice

_TRIES_MAX = 2000
"""Places of a log at which a JSON value is looked for in vain, before the search is given up."""
_GLANCE = 400
_BEGUN = re.compile(r"^[\[{][\[{\s]*(?:\"|$)")
"""So begins JSON, and not ``[INFO]`` or ``{'a': 1}`` of a log."""
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of a key that stands twice, Python would take the last in silence."""
    found = dict(pairs)
    if len(found) < len(pairs):
        for key, value in pairs:
            if found[key] != value and not isinstance(found[key], Twice):
                found[key] = Twice(value, found[key])
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


class Document(msgspec.Struct, frozen=True):
    """One JSON object or list, and where it stands."""

    position: str
    value: Any
    start: int
    end: int


class Damage(msgspec.Struct, frozen=True):
    """Where a JSON value begins and cannot be read to its end."""

    position: str
    head: str
    start: int


_Item = TypeVar("_Item", Document, Damage)


def without_halves(text: str) -> str:
    """Escapes of half a character, which no file and no terminal takes, become the mark for what is unreadable."""
    if not _HALF.search(text):
        return text
    return _ESCAPE.sub(lambda found: r"\ufffd" if found["lone"] else found[0], text)


def whole(text: str) -> Document | None:
    """The text as one JSON value."""
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return Document("", value, 0, len(text)) if isinstance(value, dict | list) else None


class Scattered(msgspec.Struct, frozen=True):
    """What was found in a text, and the lines at which something began like JSON and was none."""

    documents: list[Document]
    damaged: list[Damage]


def scattered(text: str) -> Scattered:
    """Every JSON object or list that begins a line: JSON lines, concatenated objects, results in a log."""
    found: list[Document] = []
    damaged: list[Damage] = []
    at = _next_start(text, 0)
    while at >= 0 and len(damaged) < _TRIES_MAX:
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            damaged.append(Damage("", text[at : at + _GLANCE], at))
            end = _next_line(text, at)
        else:
            if _ends_well(text, end):
                found.append(Document("", value, at, end))
        at = _next_start(text, end)
    return Scattered(list(_placed(text, found)), [d for d in _placed(text, damaged) if _BEGUN.match(d.head)])


def _placed(text: str, items: Iterable[_Item]) -> Iterator[_Item]:
    """With line numbers; counted once along the text."""
    line, at = 1, 0
    for item in items:
        line += text.count("\n", at, item.start)
        at = item.start
        yield msgspec.structs.replace(item, position=f"line {line}")


def _next_start(text: str, at: int) -> int:
    """Where the next line begins with a brace or bracket; blanks before it do not count."""
    size = len(text)
    while 0 <= at < size:
        first = at
        while first < size and text[first] in " \t\r\n\ufeff":
            first += 1
        if first < size and text[first] in "{[":
            return first
        at = _next_line(text, first)
    return -1


def _next_line(text: str, at: int) -> int:
    newline = text.find("\n", at)
    return len(text) if newline < 0 else newline + 1


def _ends_well(text: str, end: int) -> bool:
    """``[12] INFO`` of a log is no list; a comma after an object of a pasted list is forgiven."""
    tail = text[end : _next_line(text, end)].strip()
    return tail in {"", ",", "]"} or tail.startswith("{")
