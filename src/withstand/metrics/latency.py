"""The times of one request, in ns, from its record: each as the catalogue defines it, None where it is undefined.

Also the pile of them over a stage. It knows nothing of rates, plans or judgement.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import eq, sub

import msgspec

from withstand.metrics.sample import Sample
from withstand.record import Clock, Record, Status

NS_PER_MS = 1e6


class Timing(msgspec.Struct, frozen=True):
    """One answer's times."""

    ttft_ns: int | None
    tpot_ns: float | None
    e2el_ns: int | None
    response_ns: int | None
    ttft_scheduled_ns: int | None


def timing_of(record: Record) -> Timing:
    """All times of one answer that was good."""
    first_ns = record.chunk_ns[0] if record.streamed and record.chunk_ns else None
    last_ns = last_token_ns(record)
    return Timing(
        ttft_ns=_between(record.sent_ns, first_ns),
        tpot_ns=_tpot_ns(record),
        e2el_ns=_between(record.sent_ns, last_ns),
        response_ns=_between(record.scheduled_ns, last_ns),
        ttft_scheduled_ns=_between(record.scheduled_ns, first_ns),
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
    decode_ns = record.chunk_ns[-1] - record.chunk_ns[0]
    assert record.output_tokens is not None
    return decode_ns / (record.output_tokens - 1) if decode_ns else None


def unsure_events(record: Record) -> list[int]:
    """Indexes, rising, of the events whose stamp is only the latest that they can have come at.

    The kernel's stamp holds for all of a read unless we looked late, and then the record says so. A program's own
    stamp never does: of events that share one, only the last is sure.
    """
    if record.clock is Clock.KERNEL:
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


class Latencies:
    """The times of a stage's good answers, metric by metric."""

    __slots__ = (
        "e2el",
        "itl",
        "lateness",
        "output_events",
        "response",
        "shared_stamps",
        "tpot",
        "ttft",
        "ttft_scheduled",
        "unsure_gaps",
    )

    def __init__(self) -> None:
        self.ttft = Sample()
        self.tpot = Sample("d")
        self.itl = Sample()
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
        self.e2el.add(timing.e2el_ns)
        self.response.add(timing.response_ns)
        self.ttft_scheduled.add(timing.ttft_scheduled_ns)
        if record.streamed and record.chunk_ns:
            self._add_events(record)

    def _add_events(self, record: Record) -> None:
        gaps = gaps_ns(record)
        self.itl.extend(gaps)
        self.output_events += len(record.chunk_ns)
        self.shared_stamps += sum(map(eq, record.chunk_ns[1:], record.chunk_ns))
        self.unsure_gaps += len(record.chunk_ns) - 1 - len(gaps)

    def by_name(self) -> dict[str, Sample]:
        """The metrics that a chart shows."""
        names = ("ttft", "tpot", "itl", "e2el", "response")
        return {name: getattr(self, name) for name in names}


def with_timing(records: Iterable[Record]) -> Iterable[tuple[Record, Timing | None]]:
    """Each record with its times; None unless the answer was good, since a failure's times are no latency."""
    for record in records:
        yield record, timing_of(record) if record.status is Status.OK else None
