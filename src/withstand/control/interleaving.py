"""In which order the blocks of two sides are measured: A B B A B A A B …, each half turned around against the last.

So a drift that is linear falls out of every four blocks, and one that is quadratic out of every eight (Thue-Morse).
Pure: it starts nothing.
"""

from collections.abc import Iterator

import msgspec

from withstand.errors import UsageError

BLOCKS_MIN, BLOCKS_MAX = 4, 10_000
"""Pairs; with fewer, hardly anything is ever shown."""


class Block(msgspec.Struct, frozen=True):
    """One of them. ``side`` is 0 for A and 1 for B, ``pair`` counts from 1, ``place`` from 0 over all blocks."""

    side: int
    pair: int
    place: int

    @property
    def name(self) -> str:
        """``a-01``: its folder."""
        return f"{'ab'[self.side]}-{self.pair:02d}"


Pair = tuple[Block, Block]
"""Neighbours, in the order in which they are measured."""


def blocks_of(pairs: int) -> tuple[Block, ...]:
    """All blocks, in the order in which they are measured.

    Raises:
        UsageError: the number is odd, so that a drift would not fall out, too small or too large.
    """
    if not BLOCKS_MIN <= pairs <= BLOCKS_MAX or pairs % 2:
        raise UsageError(f"--blocks {pairs}: give an even number of blocks a side, {BLOCKS_MIN} to {BLOCKS_MAX:,}.")
    return tuple(_blocks(pairs))


def pairs_of(pairs: int) -> Iterator[Pair]:
    """The same, two by two."""
    blocks = iter(blocks_of(pairs))
    return zip(blocks, blocks, strict=True)


def _blocks(pairs: int) -> Iterator[Block]:
    for pair in range(pairs):
        first = pair.bit_count() % 2
        yield Block(first, pair + 1, 2 * pair)
        yield Block(1 - first, pair + 1, 2 * pair + 1)
