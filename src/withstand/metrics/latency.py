"""The times of one request, in ns, from its record: each as the catalogue defines it, None where it is undefined.

Also the pile of them over a stage. It knows nothing of rates, plans or judgement.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile
from operator import eq, sub
from typing import Self

import msgspec

from withstand.metrics.sample import Keep, Sample
from withstand.record import Clock, Record, Status

NS_PER_MS = 1e6
_TOKENS_AN_EVENT_MAX = 1000
"""An event that claims more is no step of an engine; its tokens shall not fill our memory."""


class Timing(msgspec.Struct, frozen=True):
    """One answer's times."""

    ttft_ns: int | None
    tpot_ns: float | None
    gap_mean_ns: float | None
    """Of all its events, sure or not."""
    e2el_ns: int | None
    response_ns: int | None
    ttft_scheduled_ns: int | None
    gaps_ns: Sequence[int] = ()
    """Between events that are sure."""


def timing_of(record: Record) -> Timing:
    """All times of one answer that was good."""
    first_ns = record.chunk_ns[0] if record.streamed and record.chunk_ns else None
    last_ns = last_token_ns(record)
    return Timing(
        ttft_ns=_between(record.sent_ns, first_ns),
        tpot_ns=_tpot_ns(record),
        gap_mean_ns=_gap_mean_ns(record),
        e2el_ns=_between(record.sent_ns, last_ns),
        response_ns=_between(record.scheduled_ns, last_ns),
        ttft_scheduled_ns=_between(record.scheduled_ns, first_ns),
        gaps_ns=gaps_ns(record),
    )


def last_token_ns(record: Record) -> int | None:
    """When the answer's last token was here: the last event's stamp; without a stream, the answer's end."""
    if not record.streamed:
        return record.end_ns
    return record.chunk_ns[-1] if record.chunk_ns else None


def _between(from_ns: int | None, to_ns: int | None) -> int | None:
    return None if from_ns is None or to_ns is None else to_ns - from_ns


def _tpot_ns(record: Record) -> float | None:
    """Undefined below two tokens, and where all of them came at one instant: then no time was seen between them."""
    if not record.streamed or len(record.chunk_ns) < 2 or (record.output_tokens or 0) < 2:
        return None
    assert record.output_tokens is not None
    decode_ns, later_tokens = _decode_ns(record), record.output_tokens - _first_tokens(record)
    return decode_ns / later_tokens if decode_ns and later_tokens > 0 else None


def _decode_ns(record: Record) -> int:
    return record.chunk_ns[-1] - record.chunk_ns[0]


def _first_tokens(record: Record) -> int:
    """Tokens that came at the first instant: no time after it was spent on them.

    Events of one read share the stamp of the last of them. An event whose tokens nobody tells counts as one.
    """
    first_ns = record.chunk_ns[0]
    events = sum(1 for _ in takewhile(first_ns.__eq__, record.chunk_ns))
    tokens = told_tokens(record)
    return sum(tokens[:events]) if tokens else events


def told_tokens(record: Record) -> list[int] | None:
    """The tokens of each event, where the server tells them of every one."""
    told = record.chunk_tokens
    return told if told and len(told) == len(record.chunk_ns) else None


def _gap_mean_ns(record: Record) -> float | None:
    if not record.streamed or len(record.chunk_ns) < 2:
        return None
    return _decode_ns(record) / (len(record.chunk_ns) - 1) or None


def unsure_events(record: Record) -> list[int]:
    """Indexes, rising, of the events whose stamp is only the latest that they can have come at.

    The kernel's stamp holds for all of a read unless we looked late, and then the record says so. A program's own
    stamp never does: of events that share one, only the last is sure.
    """
    if record.clock is Clock.KERNEL:
        return record.unsure
    if len(set(record.chunk_ns)) == len(record.chunk_ns):
        return record.unsure
    shared = [i for i, (now, then) in enumerate(pairwise(record.chunk_ns)) if now == then]
    return sorted({*record.unsure, *shared}) if shared else record.unsure


def gap_ends(record: Record) -> Sequence[int]:
    """Indexes of the events that end a gap between two events, both of which are sure."""
    if not record.streamed:
        return ()
    ends = range(1, len(record.chunk_ns))
    unsure = unsure_events(record)
    if not unsure:
        return ends
    touched = {*unsure, *(i + 1 for i in unsure)}
    return [end for end in ends if end not in touched]


def gaps_ns(record: Record) -> list[int]:
    """Times between successive events, as far as they are known: 0 where the server wrote both in one piece."""
    ends, stamps_ns = gap_ends(record), record.chunk_ns
    if isinstance(ends, range):
        return list(map(sub, stamps_ns[1:], stamps_ns))
    return [stamps_ns[end] - stamps_ns[end - 1] for end in ends]


def shared_stamps(record: Record, gaps: Sequence[int]) -> int:
    """Events that share their stamp with the next; where all gaps are known, those of 0."""
    if len(gaps) == len(record.chunk_ns) - 1:
        return gaps.count(0)
    return sum(map(eq, record.chunk_ns[1:], record.chunk_ns))


def token_gaps_ns(record: Record) -> list[float]:
    """One value a token: the time since tokens came last, shared by those that came then; none where nobody tells.

    Where an event's stamp is unsure, nobody knows how the time was shared: those gaps are left out.
    """
    tokens = told_tokens(record) if record.streamed else None
    if tokens is None or max(tokens) > _TOKENS_AN_EVENT_MAX:
        return []
    came: dict[int, int] = {}
    for event_ns, count in zip(record.chunk_ns, tokens, strict=True):
        came[event_ns] = came.get(event_ns, 0) + count
    instants = [(instant_ns, count) for instant_ns, count in came.items() if count > 0]
    unsure = {record.chunk_ns[i] for i in unsure_events(record)}
    gaps: list[float] = []
    for (before_ns, _), (instant_ns, count) in pairwise(instants):
        if instant_ns not in unsure and before_ns not in unsure:
            gaps += [(instant_ns - before_ns) / count] * count
    return gaps


class Latencies:
    """The times of a stage's good answers, metric by metric."""

    __slots__ = (
        "e2el",
        "itl",
        "itl_per_token",
        "itl_request_mean",
        "lateness",
        "output_events",
        "response",
        "shared_stamps",
        "tpot",
        "ttft",
        "ttft_scheduled",
        "unsure_gaps",
    )

    def __init__(self, keep: Keep | None = None) -> None:
        self.ttft = Sample()
        self.tpot = Sample("d")
        self.itl = Sample("q", keep)
        self.itl_per_token = Sample("d", keep)
        self.itl_request_mean = Sample("d")
        self.e2el = Sample()
        self.response = Sample()
        self.ttft_scheduled = Sample()
        self.lateness = Sample()
        """Of every request that was taken up, good or not."""
        self.output_events = 0
        self.shared_stamps = 0
        self.unsure_gaps = 0

    def add(self, record: Record, timing: Timing | None) -> None:
        """One request; ``timing`` is None unless its answer was good."""
        self.lateness.add(_between(record.ready_ns, record.started_ns))
        if timing is None:
            return
        self.ttft.add(timing.ttft_ns)
        self.tpot.add(timing.tpot_ns)
        self.itl_request_mean.add(timing.gap_mean_ns)
        self.e2el.add(timing.e2el_ns)
        self.response.add(timing.response_ns)
        self.ttft_scheduled.add(timing.ttft_scheduled_ns)
        if record.streamed and record.chunk_ns:
            self._add_events(record, timing.gaps_ns)

    def _add_events(self, record: Record, gaps: Sequence[int]) -> None:
        self.itl.extend(gaps)
        if record.chunk_tokens is not None:
            self.itl_per_token.extend(token_gaps_ns(record))
        self.output_events += len(record.chunk_ns)
        self.shared_stamps += shared_stamps(record, gaps)
        self.unsure_gaps += len(record.chunk_ns) - 1 - len(gaps)

    def merge(self, other: Self) -> None:
        """The times of other answers of the stage."""
        for name in self.__slots__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, Sample):
                mine.merge(theirs)
            else:
                setattr(self, name, mine + theirs)

    def by_name(self) -> dict[str, Sample]:
        """The metrics that a chart shows."""
        names = ("ttft", "tpot", "itl", "e2el", "response")
        return {name: getattr(self, name) for name in names}


def timing_if_good(record: Record) -> Timing | None:
    """The times of a good answer; a failure's times are no latency."""
    return timing_of(record) if record.status is Status.OK else None


def with_timing(records: Iterable[Record]) -> Iterable[tuple[Record, Timing | None]]:
    """Each record with its times; None unless the answer was good."""
    for record in records:
        yield record, timing_if_good(record)
