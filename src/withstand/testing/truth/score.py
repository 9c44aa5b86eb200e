"""The score of an answer: which bytes are to be written when, and which tokens are told by them.

Lazy and pure: a score is made without a clock or a socket, and whoever plays it stamps what really happened.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

import msgspec

from withstand.testing.truth.asked import Asked


class Mark(NamedTuple):
    """An output event within a write: known to a reader when ``end`` bytes of the write are out.

    Without tokens it is the end of an output event that was known before: a reader may wait for it, or read on to it.
    """

    end: int
    tokens: int


class Write(msgspec.Struct, frozen=True):
    """Bytes for one ``send``, due ``at_ns`` after the start. The law: marks stand in order of their end."""

    at_ns: int
    data: bytes
    marks: tuple[Mark, ...] = ()


class End(StrEnum):
    """What becomes of the connection when the last write is out."""

    KEEP = "keep"
    CLOSE = "close"
    RESET = "reset"
    HANG = "hang"


class Score(msgspec.Struct, frozen=True):
    """A whole answer. ``idle_ms`` = close the kept connection after so long without a request."""

    status: int | None
    writes: Iterator[Write]
    end: End = End.KEEP
    idle_ms: float | None = None


Pass = Callable[[Iterator[Write], Asked], Iterator[Write]]
"""Writes in, writes out."""


def wrapped(write: Write, before: bytes, after: bytes) -> Write:
    """The same write with bytes around it; an event that ends with the write now ends with those."""
    if not write.marks:
        return Write(write.at_ns, before + write.data + after)
    shift, whole = len(before), len(write.data)
    behind = shift + len(after)
    # A list and no generator: this is done for every token.
    marks = tuple([Mark(end + (shift if tokens or end < whole else behind), tokens) for end, tokens in write.marks])
    return Write(write.at_ns, before + write.data + after, marks)


def united(writes: Iterable[Write]) -> Write:
    """Several writes as one, due with the last of them."""
    data, marks, at_ns = b"", list[Mark](), 0
    for write in writes:
        marks += [Mark(len(data) + mark.end, mark.tokens) for mark in write.marks]
        data += write.data
        at_ns = write.at_ns
    return Write(at_ns, data, tuple(marks))


def cut_at(write: Write, places: Iterable[int], pause_ns: int = 0) -> Iterator[Write]:
    """The same bytes in pieces, ``pause_ns`` apart; each mark goes with the piece that makes it known."""
    begin, at_ns = 0, write.at_ns
    for end in (*places, len(write.data)):
        marks = tuple(Mark(m.end - begin, m.tokens) for m in write.marks if begin < m.end <= end)
        yield Write(at_ns, write.data[begin:end], marks)
        begin, at_ns = end, at_ns + pause_ns
