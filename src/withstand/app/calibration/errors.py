"""The client's records beside the null server's log: how wrong were we, in ns? Pure."""

from collections.abc import Iterable, Iterator, Mapping

from withstand.load.null import Served
from withstand.metrics.latency import gap_ends, unsure_events
from withstand.record import Record

_HELD_NS = 100_000
"""A write that took longer was interrupted: its true time is not known well enough to judge anyone by it."""


def itl_errors_ns(records: Iterable[Record], log: Mapping[int, Served]) -> Iterator[int]:
    """Of each gap between two tokens whose true times are known, how far the shown one is off."""
    for record in records:
        served = log[record.id]
        shift_ns = [ours - true for ours, true in zip(record.chunk_ns, served.began_ns, strict=False)]
        known = [_is_known(served, i) for i in range(len(shift_ns))]
        for i in gap_ends(record):
            if i < len(known) and known[i] and known[i - 1]:
                yield abs(shift_ns[i] - shift_ns[i - 1])


def ttft_errors_ns(records: Iterable[Record], log: Mapping[int, Served]) -> Iterator[int]:
    """Of each answer, how far TTFT is off from the server's own: arrival of the request to the first write."""
    for record in records:
        served = log[record.id]
        if not record.chunk_ns or record.sent_ns is None or 0 in unsure_events(record):
            continue
        if served.began_ns and _is_known(served, 0):
            yield abs((record.chunk_ns[0] - record.sent_ns) - (served.began_ns[0] - served.arrived_ns))


def _is_known(served: Served, place: int) -> bool:
    return served.ended_ns[place] - served.began_ns[place] <= _HELD_NS
