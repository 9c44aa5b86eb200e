"""How answers come: event by event, or held back, and by what rule.

The law behind it: the first token of a real stream does not wait for the tokens after it. So its TTFT is the same for
a short answer and a long one; what grows with the answer's length was held back. Where pieces hold several events,
a buffer of bytes cuts inside of events, and a batch of time or count does not.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from statistics import median

import msgspec

from withstand.doctor.heard import NS_PER_MS, Heard, Read

_ONE_PIECE_NS = 500_000
"""Reads that are no further apart came together."""
_HELD_SHARE = 0.5
_SEVERAL = 2
"""Events in the piece in the middle, from which on pieces are no single events; a stall makes but one large piece."""
_BATCH_MS_MIN = 15.0
"""Pieces that come faster are a fast engine's, or a busy machine's; nobody who batches waits for less."""
_WINDOW_MS_MIN = 15.0
"""A generation shorter than this says nothing: chance alone moves a TTFT by as much."""
_EVENTS_MIN = 8
_CUT_SHARE = 0.5


class Kind(StrEnum):
    """By what rule an answer reaches its client."""

    STREAMS = "streams"
    WHOLE = "buffers whole"
    BY_SIZE = "buffers by size"
    BY_TIME = "batches by time"
    FAKE = "fake stream"
    ONE_BODY = "one body"
    UNKNOWN = "unknown"


class Piece(msgspec.Struct, frozen=True):
    """Reads that came together."""

    stamp_ns: int
    size: int
    events: int
    whole: bool


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of several answers; times are medians."""

    kind: Kind
    events: int = 0
    pieces: int = 0
    piece_bytes: float = 0.0
    """Of those that are neither the first nor the last."""
    piece_events: float = 0.0
    """In the piece in the middle."""
    gap_ms: float = 0.0
    """Between pieces."""
    ttft_ms: float = 0.0
    short_ttft_ms: float = 0.0
    """Of answers of a few tokens; 0 = none is known."""
    silent_share: float = 0.0
    """Of a long answer's tokens, by its usage, those without an event of their own."""
    comparable: bool = True
    """Whether there is something to hold a long answer's TTFT against: an agent's few tokens may be no text yet."""
    whole_ms: float = 0.0
    """A long answer's time without streaming."""
    held_share: float = 0.0
    """Of a long answer's generation, the part before its first token reached us: 0 for a real stream, 1 = all."""

    @property
    def is_open(self) -> bool:
        """The first text came late, and it is not known why."""
        return self.kind is Kind.UNKNOWN and self.events >= _EVENTS_MIN and self.held_share > _HELD_SHARE


def pieces_of(reads: Sequence[Read]) -> list[Piece]:
    """Those with output, and what is cut off from it; reads that came together are one."""
    pieces: list[Piece] = []
    for read in reads:
        if pieces and read.stamp_ns - pieces[-1].stamp_ns <= _ONE_PIECE_NS:
            last = pieces.pop()
            size, events = last.size + read.size, last.events + read.events
            pieces.append(Piece(last.stamp_ns, size, events, read.whole))
        else:
            pieces.append(Piece(read.stamp_ns, read.size, read.events, read.whole))
    return [piece for piece in pieces if piece.events]


def shape_of(long: Sequence[Heard], short: Sequence[Heard], whole: Sequence[Heard]) -> Shape:
    """Of long streamed answers, short streamed ones, and long ones that were not streamed; all of them good."""
    if not long or not any(heard.streamed for heard in long):
        return Shape(kind=Kind.ONE_BODY if long else Kind.UNKNOWN)
    cut = [pieces_of(heard.reads) for heard in long]
    seen = Shape(
        kind=Kind.UNKNOWN,
        events=round(median(len(heard.events_ns) for heard in long)),
        pieces=round(median(map(len, cut))),
        piece_bytes=_median(piece.size for pieces in cut for piece in _inner(pieces)),
        piece_events=_median(float(piece.events) for pieces in cut for piece in pieces),
        gap_ms=_median((b.stamp_ns - a.stamp_ns) / NS_PER_MS for pieces in cut for a, b in pairwise(pieces)),
        ttft_ms=_median(heard.ttft_ms for heard in long),
        short_ttft_ms=_median(heard.ttft_ms for heard in short),
        silent_share=_median(max(0.0, 1 - len(h.events_ns) / h.tokens) for h in long if h.tokens),
        comparable=not short or any(heard.events_ns for heard in short),
        whole_ms=_median(heard.e2el_ms for heard in (whole or long)),
    )
    seen = msgspec.structs.replace(seen, held_share=_held_share(seen, long, short))
    return msgspec.structs.replace(seen, kind=_kind(seen, cut))


def _inner(pieces: Sequence[Piece]) -> Sequence[Piece]:
    return pieces[1:-1] or pieces[:1]


def _held_share(seen: Shape, long: Sequence[Heard], short: Sequence[Heard]) -> float:
    asked_less = short and max(h.tokens for h in short) <= min(h.tokens for h in long) / 2
    base_ms = seen.short_ttft_ms if asked_less else 0.0
    window_ms = seen.whole_ms - base_ms
    return max(0.0, (seen.ttft_ms - base_ms) / window_ms) if window_ms > 0 else 0.0


def _kind(seen: Shape, cut: Sequence[Sequence[Piece]]) -> Kind:
    several = seen.piece_events >= _SEVERAL
    if seen.events < _EVENTS_MIN or seen.whole_ms - seen.short_ttft_ms < _WINDOW_MS_MIN:
        return Kind.UNKNOWN
    if several and _cut_share(cut) >= _CUT_SHARE:
        return Kind.BY_SIZE
    if seen.held_share > _HELD_SHARE and not (several or _is_held_for_sure(seen)):
        return Kind.UNKNOWN
    if seen.held_share > _HELD_SHARE:
        return Kind.WHOLE if several else Kind.FAKE
    return Kind.BY_TIME if several and seen.gap_ms >= _BATCH_MS_MIN else Kind.STREAMS


def _is_held_for_sure(seen: Shape) -> bool:
    """The first text waits for the tokens before it that are none, as for the head of an agent's call."""
    return seen.comparable and seen.held_share - seen.silent_share > _HELD_SHARE


def _cut_share(cut: Sequence[Sequence[Piece]]) -> float:
    """Of the pieces before the last, those that end inside of an event."""
    before = [piece for pieces in cut for piece in pieces[:-1]]
    return sum(not piece.whole for piece in before) / len(before) if before else 0.0


def _median(values: Iterator[float | None]) -> float:
    known = [value for value in values if value is not None]
    return median(known) if known else 0.0
