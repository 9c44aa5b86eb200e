"""Prometheus' text format 0.0.4 as series. Pure: text in, numbers out.

The law: whatever comes in, nothing is raised; a line that breaks the format says nothing. It does not know what a name
means, and takes the parts of a histogram (``_sum``, ``_count``, ``_bucket``) as the series that they are.
"""

import re
from collections.abc import Collection, Iterator, Mapping

import msgspec

_NAME = re.compile(r"[ \t]*([a-zA-Z_:][a-zA-Z0-9_:]*)")
_LABELS = re.compile(r'[ \t]*\{((?:[^"}]|"(?:[^"\\]|\\.)*+")*+)\}')
_LABEL = re.compile(r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*+)"[ \t]*(?:,|$)')
_VALUE = re.compile(
    r"[ \t]*([+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan))"
    r"(?:[ \t]+[+-]?[0-9]+)?[ \t]*$",  # with a timestamp behind it, which is not used: a sample has its own
    re.IGNORECASE,
)
_ESCAPED = re.compile(r"\\(.)")
_MEANT = {"n": "\n", "\\": "\\", '"': '"'}


class Series(msgspec.Struct, frozen=True):
    """One line: a name, its labels, its value, which may be infinite or no number."""

    name: str
    labels: Mapping[str, str]
    value: float


def read_series(text: str, wanted: Collection[str] | None = None) -> Iterator[Series]:
    """Every series of the names that are wanted; None = of all."""
    for line in text.split("\n"):
        name = _NAME.match(line)
        if name and (wanted is None or name[1] in wanted):
            series = _series(name[1], line.rstrip("\r"), name.end())
            if series:
                yield series


def _series(name: str, line: str, start: int) -> Series | None:
    labels: dict[str, str] | None = {}
    braces = _LABELS.match(line, start)
    if braces:
        labels, start = _labels(braces[1]), braces.end()
    elif line[start : start + 1] not in {" ", "\t"}:
        return None
    value = _VALUE.match(line, start)
    return Series(name, labels, float(value[1])) if value and labels is not None else None


def _labels(text: str) -> dict[str, str] | None:
    """None where they break the format; a comma behind the last one does not."""
    labels: dict[str, str] = {}
    end = len(text.rstrip(" \t"))
    place = 0
    while place < end:
        label = _LABEL.match(text, place)
        if label is None:
            return None
        labels[label[1]] = _ESCAPED.sub(lambda match: _MEANT.get(match[1], match[0]), label[2])
        place = label.end()
    return labels
