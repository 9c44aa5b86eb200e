"""A head that a parser has read, and is known again by its bytes: pure. Nearly all heads of one peer are the same.

Only the digits of its ``content-length`` may be others. What is taken for it is the same head, then a body of exactly
that length, then nothing: whatever else comes, and be it a byte, is for the parser. So nothing is read here that the
parser would read in another way, as long as it stands before a message's first byte.
"""

import re
from typing import Generic, TypeVar

BYTES_MAX = 8192
"""A longer one is not kept, for every connection may keep one."""
_DIGITS_MAX = 15
_STRANGE_MAX = 32
_LENGTH = re.compile(rb"\ncontent-length:[ \t]*(\d{1,15})[ \t]*\r\n", re.IGNORECASE)
_END = b"\r\n\r\n"

Head = TypeVar("Head")


class Familiar(Generic[Head]):
    """``head`` is what the parser has made of it; ``before`` and ``behind`` are what stands around the digits."""

    __slots__ = ("_before", "_behind", "_behind_size", "_start", "_stop", "head")

    def __init__(self, head: Head, before: bytes, behind: bytes) -> None:
        self.head = head
        self._before = before
        self._behind = behind
        self._behind_size = len(behind)
        self._start = len(before)
        self._stop = len(before) + _DIGITS_MAX + len(behind)

    def body_at(self, data: bytes) -> int:
        """Where the body begins, if ``data`` is this head with the whole of a body, and nothing else; else 0."""
        if not data.startswith(self._before):
            return 0
        stop = data.find(self._behind, self._start, self._stop)
        if stop < 0:
            return 0
        digits = data[self._start : stop]
        at = stop + self._behind_size
        return at if digits.isdigit() and int(digits) == len(data) - at else 0


def familiar(head: Head, data: bytes, size: int) -> Familiar[Head] | None:
    """To know it by; None where it is not one of a plain kind.

    ``data``: what the parser was given at the beginning of a message, and was the whole of it; ``size``: of its body.
    """
    end = data.find(_END) + len(_END)
    said = data[:end]
    plain = len(data) - end == size and end <= BYTES_MAX and said.count(b"\n") == said.count(b"\r\n")
    length = _LENGTH.search(said) if plain and said.lower().count(b"content-length") == 1 else None
    if length is None or int(length[1]) != size:
        return None
    return Familiar(head, said[: length.start(1)], said[length.end(1) :])


class Memory(Generic[Head]):
    """Of one peer: its last plain head."""

    __slots__ = ("known", "strange")

    def __init__(self) -> None:
        self.known: Familiar[Head] | None = None
        self.strange = 0
        """Heads that were not known, since one was."""

    def meet(self, head: Head, data: bytes, size: int) -> None:
        """A head that it did not know. Some peers have another one each time; of those it learns now and then only."""
        self.strange += 1
        if self.strange < _STRANGE_MAX or self.strange % _STRANGE_MAX == 0:
            self.known = familiar(head, data, size)
