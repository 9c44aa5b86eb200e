"""Finds printed "Serving Benchmark Result" blocks in any text: logs, Markdown, YAML, terminal copies. Pure.

A block opens with a title between rules of ``=`` and ends with such a rule, the next title or the text. Its lines may
be indented or carry the prefix of a logger; blank lines, sections and lines of other programs may lie between. A block
in parts is read with its part on text alone. What a label means is not known here.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

_TITLE = re.compile(r"={3,} ?(?P<title>[A-Z][A-Za-z -]{0,60}?) ?={3,}")
_LINE = re.compile(r"^\W{0,4}(?P<label>[A-Za-z][^:]{0,90}?)\s*:(?:\s+(?P<value>\S.*))?$")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_FRAME = " \t|>#*`│┃"
_RULE_LENGTH_MIN = 10
_LINE_LENGTH_MAX = 400
_LINES_MAX = 200


class Entry(msgspec.Struct, frozen=True):
    """One line of a block."""

    label: str
    value: str
    section: str | None


class Block(msgspec.Struct, frozen=True):
    """One block; lines are counted from 1."""

    title: str
    line: int
    end_line: int
    entries: tuple[Entry, ...]
    closed: bool
    """It ended with a rule, hence is whole."""
    before: tuple[str, ...]
    """The lines since the block before it: where the command, and the name of what was measured, may stand."""


def lines_of(text: str) -> list[str]:
    """Without colours; a carriage return overwrites, as on a terminal."""
    return [line.rstrip("\r").rpartition("\r")[2] for line in _ANSI.sub("", text).split("\n")]


def find(text: str) -> list[Block]:
    """All of them, in order."""
    lines = lines_of(text)
    titles = [(i, found) for i, line in enumerate(lines) if (found := _title(line)) and _opens(found)]
    blocks: list[Block] = []
    for number, (at, title) in enumerate(titles):
        limit = titles[number + 1][0] if number + 1 < len(titles) else len(lines)
        before = lines[blocks[-1].end_line if blocks else 0 : at]
        blocks.append(_block(lines[: min(limit, at + _LINES_MAX)], at, title, before))
    return blocks


def _title(line: str) -> re.Match[str] | None:
    """A title of results; the limit keeps a search in the longest line short."""
    found = _TITLE.search(line) if len(line) <= _LINE_LENGTH_MAX and "Result" in line else None
    return found if found and "Result" in found["title"] else None


def _opens(title: re.Match[str]) -> bool:
    """``Text Result`` and ``Audio Result`` are parts of a block."""
    return any(word in title["title"] for word in ("Serving", "Benchmark", "Steady"))


def _is_rule(line: str) -> bool:
    bare = line.strip(_FRAME)
    return len(bare) >= _RULE_LENGTH_MIN and set(bare) == {"="}


def _section(line: str) -> str | None:
    """``------Time to First Token------``."""
    bare = line.strip(_FRAME)
    name = bare.strip("-").strip()
    return name if name and bare.startswith("--") and bare.endswith("--") else None


def _block(lines: Sequence[str], at: int, title: re.Match[str], before: Sequence[str]) -> Block:
    strip = _Stripper(title.string[: title.start()])
    entries: list[Entry] = []
    section: str | None = None
    of_text = True
    for i in range(at + 1, len(lines)):
        line = strip(lines[i])
        if line is None:
            continue
        if _is_rule(line):
            return Block(title["title"], at + 1, i + 1, tuple(entries), closed=True, before=tuple(before))
        part, named = _title(line), _section(line)
        of_text = part["title"].startswith("Text") if part else of_text
        section = named or section
        entries += _entries(line, section) if of_text and not named else []
    return Block(title["title"], at + 1, len(lines), tuple(entries), closed=False, before=tuple(before))


def _entries(line: str, section: str | None) -> Iterator[Entry]:
    found = _LINE.match(line.rstrip()) if len(line) <= _LINE_LENGTH_MAX else None
    if found and found["value"]:
        yield Entry(" ".join(found["label"].split()), found["value"], section)


class _Stripper:
    """Takes a logger's prefix off; a line without it is not of the block. Digits in it (times, pids) may change."""

    def __init__(self, prefix: str) -> None:
        shape = re.sub(r"\d+", "0", prefix.strip())
        escaped = re.escape(shape).replace("0", r"\d+")
        self._pattern = re.compile(rf"^\s*{escaped}\s?") if shape else None

    def __call__(self, line: str) -> str | None:
        if self._pattern is None:
            return line
        found = self._pattern.match(line)
        return line[found.end() :] if found else None
