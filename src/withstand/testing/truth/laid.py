"""How bytes are laid into writes: joined, cut, interspersed, broken off.

Always exact about which write tells a token.
"""

from collections.abc import Iterator
from itertools import islice
from random import Random

from withstand.testing.truth.asked import Asked
from withstand.testing.truth.score import Pass, Write, cut_at, united


def joined(count: int) -> Pass:
    """So many events in one write, when the last of them is due: a hop that buffers."""

    def lay(writes: Iterator[Write], _: Asked) -> Iterator[Write]:
        while group := tuple(islice(writes, count)):
            yield united(group)

    return lay


def comments(writes: Iterator[Write], _: Asked) -> Iterator[Write]:
    """A comment half-way before each event; the first stands before the first token."""
    before_ns = 0
    for write in writes:
        yield Write((before_ns + write.at_ns) // 2, b": keep-alive\n\n")
        yield write
        before_ns = write.at_ns


def split(pause_us: float) -> Pass:
    """Every write in two, at any byte, with a pause between the halves so that a reader sees both."""

    def lay(writes: Iterator[Write], asked: Asked) -> Iterator[Write]:
        random = Random(asked.schedule.seed * 1_000_003 + asked.number)
        for write in writes:
            place = random.randrange(1, max(2, len(write.data)))
            yield from cut_at(write, [place], round(pause_us * 1000))

    return _in_order(lay)


def bytewise(writes: Iterator[Write], _: Asked) -> Iterator[Write]:
    """One byte a write."""
    for write in writes:
        yield from cut_at(write, range(1, len(write.data)))


def mid_character(pause_us: float) -> Pass:
    """A cut inside every character of more than one byte."""

    def lay(writes: Iterator[Write], _: Asked) -> Iterator[Write]:
        for write in writes:
            inside = [i for i, byte in enumerate(write.data) if byte & 0xC0 == 0x80]
            yield from cut_at(write, inside, round(pause_us * 1000))

    return _in_order(lay)


def broken_off(after: int | None) -> Pass:
    """So many tokens (None = half), then three quarters of the next write that tells one, then nothing."""

    def lay(writes: Iterator[Write], asked: Asked) -> Iterator[Write]:
        left = asked.tokens // 2 if after is None else after
        for write in writes:
            left -= sum(mark.tokens for mark in write.marks)
            if left < 0:
                yield next(cut_at(write, [len(write.data) * 3 // 4]))
                return
            yield write

    return lay


def until_last_token(writes: Iterator[Write], asked: Asked) -> Iterator[Write]:
    """The write that tells the last token, then nothing."""
    left = asked.tokens
    for write in writes:
        yield write
        left -= sum(mark.tokens for mark in write.marks)
        if left <= 0:
            return


def _in_order(lay: Pass) -> Pass:
    """A write that was put off puts off those behind it."""

    def ordered(writes: Iterator[Write], asked: Asked) -> Iterator[Write]:
        floor_ns = 0
        for write in lay(writes, asked):
            floor_ns = max(floor_ns, write.at_ns)
            yield write if write.at_ns == floor_ns else Write(floor_ns, write.data, write.marks)

    return ordered
