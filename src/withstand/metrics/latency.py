"""The times of one request, in ns, from its record: each as the catalogue defines it, None where it is undefined.

Also the pile of them over a stage. It knows nothing of rates, plans or judgement.
"""

from collections.abc import Iterable
from operator import sub

import msgspec

from withstand.metrics.sample import Sample
from withstand.record import Record, Status

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


def gaps_ns(record: Record) -> list[int]:
    """Times between successive events; events of one read share a stamp, and their gap, not known, is left out."""
    if not record.streamed:
        return []
    return list(filter(None, map(sub, record.chunk_ns[1:], record.chunk_ns)))


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
        self.shared_stamps += len(record.chunk_ns) - 1 - len(gaps)

    def by_name(self) -> dict[str, Sample]:
        """The metrics that a chart shows."""
        names = ("ttft", "tpot", "itl", "e2el", "response")
        return {name: getattr(self, name) for name in names}


def with_timing(records: Iterable[Record]) -> Iterable[tuple[Record, Timing | None]]:
    """Each record with its times; None unless the answer was good, since a failure's times are no latency."""
    for record in records:
        yield record, timing_of(record) if record.status is Status.OK else None
