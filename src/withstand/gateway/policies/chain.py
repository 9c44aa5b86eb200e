"""A prompt as the hashes of its beginnings: pure. Prompts that begin alike have hashes that begin alike.

The bytes of the JSON are taken as they came: a client that goes on with a conversation sends the same ones again, and
more. Nothing is tokenised, so that the cost of a large body is that of one hash over it.
"""

from collections.abc import Iterable, Iterator

BLOCK_BYTES = 256
"""About 64 tokens."""
_FINE_BYTES = 32 << 10
"""Further on, where a block is a small share of what comes before it, blocks are larger."""
_COARSE_BYTES = 2048

Chain = tuple[int, ...]


def chain_of(parts: Iterable[bytes]) -> Chain:
    """A hash for each whole block, of it and of all that is before it."""
    text = b"".join(parts)
    found = []
    last = 0
    for start, end in _blocks(len(text)):
        last = hash((last, text[start:end]))
        found.append(last)
    return tuple(found)


def bytes_in(blocks: int) -> int:
    """How long a beginning of so many blocks is."""
    fine = _FINE_BYTES // BLOCK_BYTES
    return min(blocks, fine) * BLOCK_BYTES + max(0, blocks - fine) * _COARSE_BYTES


def _blocks(size: int) -> Iterator[tuple[int, int]]:
    start = 0
    while (end := start + (BLOCK_BYTES if start < _FINE_BYTES else _COARSE_BYTES)) <= size:
        yield start, end
        start = end
