"""The times of one answer: those that our record claims to know, beside the truth about the same.

Events that came in one read share the stamp of the last of them: only that one is claimed to be known, and so is no gap
that begins or ends at one of the others. A busy client knows less, and what it does know must still be right.
"""

from collections.abc import Iterator
from itertools import pairwise
from statistics import fmean
from typing import Final

import msgspec

from withstand.metrics.latency import NS_PER_MS, timing_of
from withstand.metrics.quantiles import percentile
from withstand.metrics.sample import Sample
from withstand.record import Record
from withstand.testing.truth.right import times_of
from withstand.testing.truth.served import Served

NAMES: Final = ("ttft_ms", "itl_mean_ms", "itl_p50_ms", "itl_p99_ms", "e2el_ms")


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


def timing(record: Record, served: Served, slack_ms: float, epoch_ns: int) -> Timing:
    """Of an answer that is a success, with as many events as were written."""
    values = dict(_whole(record, served))
    if not record.streamed:
        return Timing(values=values, slack_ms=slack_ms)
    known = list(_known_gaps(record.chunk_ns, served.event_ns))
    if known:
        values |= _gap_values(record.chunk_ns, served.event_ns, known)
    return Timing(
        values=values,
        slack_ms=slack_ms,
        tail_ms=_tail_ms(served),
        early_ms=max(_early_ms(record, served, epoch_ns), default=0.0),
        gaps=sum(b > a for a, b in pairwise(served.event_ns)),
        known_gaps=len(known),
    )


def _whole(record: Record, served: Served) -> Iterator[tuple[str, tuple[float, float]]]:
    """First and last token against the request."""
    ours = timing_of(record)
    if ours.ttft_ns is not None and served.ttft_ms is not None and _is_known(0, record.chunk_ns, served.event_ns):
        yield "ttft_ms", (served.ttft_ms, ours.ttft_ns / NS_PER_MS)
    if ours.e2el_ns is not None and served.e2el_ms is not None:
        yield "e2el_ms", (served.e2el_ms, ours.e2el_ns / NS_PER_MS)


def _is_known(index: int, chunk_ns: list[int], event_ns: list[int]) -> bool:
    """It has a stamp of its own, or left in one write with those that share its stamp."""
    if index + 1 >= len(chunk_ns) or chunk_ns[index] < chunk_ns[index + 1]:
        return True
    return event_ns[index] == event_ns[index + 1] and _is_known(index + 1, chunk_ns, event_ns)


def _known_gaps(chunk_ns: list[int], event_ns: list[int]) -> Iterator[int]:
    for index in range(len(chunk_ns) - 1):
        both = _is_known(index, chunk_ns, event_ns) and _is_known(index + 1, chunk_ns, event_ns)
        if both and event_ns[index] < event_ns[index + 1]:
            yield index


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
    for chunk_ns, event_ns in zip(record.chunk_ns, served.event_ns, strict=True):
        yield (event_ns - chunk_ns - epoch_ns) / NS_PER_MS
