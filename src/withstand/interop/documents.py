"""A text → the JSON values in it, wherever they stand: a whole file, lines, or lines of a log. Pure.

Python's own parser is used on purpose: peers write bare ``Infinity`` and ``NaN``, which strict parsers refuse.
"""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

_TRIES_MAX = 2000
"""Places of a log at which a JSON value is looked for in vain, before the search is given up."""
_DECODER = json.JSONDecoder()


class Document(msgspec.Struct, frozen=True):
    """One JSON object or list, and where it stands."""

    position: str
    value: Any
    start: int
    end: int


def whole(text: str) -> Document | None:
    """The text as one JSON value."""
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return Document("", value, 0, len(text)) if isinstance(value, dict | list) else None


def scattered(text: str) -> list[Document]:
    """Every JSON object or list that begins a line: JSON lines, concatenated objects, results in a log."""
    found = []
    at = tries = 0
    while tries < _TRIES_MAX:
        at = _next_start(text, at)
        if at < 0:
            break
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            tries += 1
            at = _next_line(text, at)
            continue
        if _ends_well(text, end):
            found.append(Document("", value, at, end))
        at = end
    return list(_placed(text, found))


def _placed(text: str, documents: list[Document]) -> Iterator[Document]:
    """With line numbers; counted once along the text."""
    line, at = 1, 0
    for document in documents:
        line += text.count("\n", at, document.start)
        at = document.start
        yield msgspec.structs.replace(document, position=f"line {line}")


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
