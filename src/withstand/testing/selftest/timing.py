"""The times of one answer: those that our record claims to know, beside the truth about the same.

Events that came in one read share the stamp of the last of them: only that one is claimed to be known, and so is no gap
that begins or ends at one of the others, nor one that the record itself calls unsure. A busy client knows less, and
what it does know must still be right. The log is asked the same: an event whose writing was interrupted is not judged.
"""

from collections.abc import Iterator
from itertools import pairwise
from statistics import fmean, median
from typing import Final

import msgspec

from withstand.metrics.latency import NS_PER_MS, timing_of, unsure_events
from withstand.metrics.quantiles import percentile
from withstand.metrics.sample import Sample
from withstand.record import Record
from withstand.testing.truth.right import times_of
from withstand.testing.truth.served import Served

NAMES: Final = ("ttft_ms", "itl_mean_ms", "itl_p50_ms", "itl_p99_ms", "e2el_ms")
_INTERRUPTED_NS: Final = 100_000
"""A writing that took so much longer than twice the usual was interrupted: nobody knows when the event was told."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """One answer. ``values`` = name → (right, ours); what is not known has no name here."""

    values: dict[str, tuple[float, float]]
    slack_ms: float = 0.0
    """The log's own uncertainty."""
    tail_ms: float = 0.0
    """From the last event to the end of the answer: both may come in one read, which has one stamp."""
    early_ms: float = 0.0
    """How much earlier than it was written an event was seen, at worst."""
    gaps: int = 0
    known_gaps: int = 0
    held: bool = False
    """Whether the machine held the answer up: its errors prove nothing."""

    def error_ms(self, name: str) -> float:
        """How far we are off."""
        right, ours = self.values[name]
        return abs(ours - right)

    @property
    def worst_ms(self) -> float:
        """How far we are off in the worst of the values."""
        return max(map(self.error_ms, self.values), default=0.0)

    def allowed_ms(self, name: str) -> float:
        """How far a right client may be off."""
        return max(self.slack_ms, self.tail_ms) if name == "e2el_ms" else self.slack_ms


def timing(record: Record, served: Served, epoch_ns: int, *, held: bool = False) -> Timing:
    """Of an answer that is a success, with as many events as were written."""
    whole = _uninterrupted(served)
    known = _known(record, served.event_ns) & whole
    values = dict(_outer(record, served, known))
    gaps = [i for i, (a, b) in enumerate(pairwise(served.event_ns)) if a < b] if record.streamed else []
    if known_gaps := [i for i in gaps if i in known and i + 1 in known]:
        values |= _gap_values(record.chunk_ns, served.event_ns, known_gaps)
    return Timing(
        values=values,
        slack_ms=_slack_ms(served, whole),
        tail_ms=_tail_ms(served),
        early_ms=max(_early_ms(record, served, epoch_ns), default=0.0),
        gaps=len(gaps),
        known_gaps=len(known_gaps),
        held=held,
    )


def _uninterrupted(served: Served) -> set[int]:
    """The events that were written without a break; all of them where the log does not tell one by one."""
    events = range(len(served.event_ns))
    if len(served.writing_ns) != len(events) or not events:
        return set(events)
    limit_ns = 2 * median(served.writing_ns) + _INTERRUPTED_NS
    return {i for i in events if served.writing_ns[i] <= limit_ns}


def _slack_ms(served: Served, whole: set[int]) -> float:
    """The longest writing of those events."""
    one_by_one = len(served.writing_ns) == len(served.event_ns) and whole
    longest_ns = max(served.writing_ns[i] for i in whole) if one_by_one else served.writing_ns_max
    return longest_ns / NS_PER_MS


def _known(record: Record, event_ns: list[int]) -> set[int]:
    """Events with a sure stamp of their own, and those that left in one write with one of them that shares it."""
    chunk_ns, unsure = record.chunk_ns, {*unsure_events(record)}
    known = set[int]()
    for i in reversed(range(len(chunk_ns))):
        if i + 1 == len(chunk_ns) or chunk_ns[i] < chunk_ns[i + 1]:
            if i not in unsure:
                known.add(i)
        elif i + 1 in known and event_ns[i] == event_ns[i + 1]:
            known.add(i)
    return known


def _outer(record: Record, served: Served, known: set[int]) -> Iterator[tuple[str, tuple[float, float]]]:
    """First and last token against the request."""
    ours, last = timing_of(record), len(served.event_ns) - 1
    if ours.ttft_ns is not None and served.ttft_ms is not None and 0 in known:
        yield "ttft_ms", (served.ttft_ms, ours.ttft_ns / NS_PER_MS)
    if ours.e2el_ns is not None and served.e2el_ms is not None and (not record.streamed or last in known):
        yield "e2el_ms", (served.e2el_ms, ours.e2el_ns / NS_PER_MS)


def _gap_values(chunk_ns: list[int], event_ns: list[int], known: list[int]) -> dict[str, tuple[float, float]]:
    right = times_of([(event_ns[i + 1] - event_ns[i]) / NS_PER_MS for i in known])
    assert right is not None
    ours = Sample()
    ours.extend(gaps := [chunk_ns[i + 1] - chunk_ns[i] for i in known])
    return {
        "itl_mean_ms": (right.mean_ms, fmean(gaps) / NS_PER_MS),
        "itl_p50_ms": (right.p50_ms, percentile(ours, 0.5) / NS_PER_MS),
        "itl_p99_ms": (right.p99_ms, percentile(ours, 0.99) / NS_PER_MS),
    }


def _tail_ms(served: Served) -> float:
    if served.done_ns is None or not served.event_ns:
        return 0.0
    return (served.done_ns - served.event_ns[-1]) / NS_PER_MS


def _early_ms(record: Record, served: Served, epoch_ns: int) -> Iterator[float]:
    if not record.streamed:
        return
    for chunk_ns, event_ns in zip(record.chunk_ns, served.event_ns, strict=True):
        yield (event_ns - chunk_ns - epoch_ns) / NS_PER_MS
