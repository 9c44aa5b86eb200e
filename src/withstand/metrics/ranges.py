"""Between which ends the times of a stage can lie, where our own reading left them open: folded over its records.

An event is ``unsure`` when it may have lain in its socket while we looked away: then it came at some time between the
event before it, or the last instant at which the socket was known to be empty, and its stamp. Everything else is exact
here; what may be off a little for all is ``fuzz``'s concern.
"""

from array import array
from typing import Self

from withstand.metrics.latency import Timing, shared_stamps, unsure_events
from withstand.metrics.sample import Sample
from withstand.record import Clock, Record

_SAMPLES = ("ttft_low", "e2el_low", "tpot_low", "tpot_high", "gap_low", "gap_high", "response_low")
_SUMS = ("user_stamped", "together", "together_first")


class Ranges:
    """Lower and upper ends, as many as there are good answers (of gaps: those that are left out of the ITL)."""

    def __init__(self) -> None:
        self.ttft_low = Sample()
        self.e2el_low = Sample()
        self.tpot_low, self.tpot_high = Sample("d"), Sample("d")
        self.tpot_share_max = 0.0
        """One token's share of the time of a whole answer, at most."""
        self.gap_low, self.gap_high = Sample(), Sample()
        self.response_low = Sample()
        """What it would be without our lateness."""
        self.user_stamped = 0
        self.together = 0
        """Sure events that share their stamp with the next."""
        self.together_first = 0
        """Those that are their answer's first."""
        self.ready_ns, self.late_ns = array("q"), array("q")
        """When each request that was taken up was ready, and how long it waited for us."""

    def add(self, record: Record, timing: Timing | None) -> None:
        """One request; ``timing`` is None unless its answer was good."""
        late_ns = 0
        if record.ready_ns is not None and record.started_ns is not None:
            late_ns = record.started_ns - record.ready_ns
            self.ready_ns.append(record.ready_ns)
            self.late_ns.append(late_ns)
        if timing is None:
            return
        self.user_stamped += record.clock is Clock.USER
        if timing.response_ns is not None:
            self.response_low.add(timing.response_ns - late_ns)
        if record.streamed and record.chunk_ns:
            self._add_stream(record, timing)
        else:
            self.e2el_low.add(timing.e2el_ns)

    def _add_stream(self, record: Record, timing: Timing) -> None:
        latest, unsure = record.chunk_ns, unsure_events(record)
        earliest = earliest_ns(record, unsure)
        self.together += max(0, shared_stamps(record, timing.gaps_ns) - len(unsure))
        self.together_first += latest[:1] == latest[1:2] and earliest[0] == latest[0]
        if timing.ttft_ns is not None:
            self.ttft_low.add(timing.ttft_ns - (latest[0] - earliest[0]))
        if timing.e2el_ns is not None:
            self.e2el_low.add(timing.e2el_ns - (latest[-1] - earliest[-1]))
        if timing.tpot_ns is not None:
            share = timing.tpot_ns / (latest[-1] - latest[0])
            self.tpot_share_max = max(self.tpot_share_max, share)
            self.tpot_low.add(
                _at_least(share, len(_unsure_at_first(latest, unsure))) * max(0, earliest[-1] - latest[0])
            )
            self.tpot_high.add(share * (latest[-1] - earliest[0]))
        if unsure:
            self._add_gaps(latest, earliest, unsure)

    def _add_gaps(self, latest: list[int], earliest: list[int], unsure: list[int]) -> None:
        for end in {*unsure, *(i + 1 for i in unsure)} - {0, len(latest)}:
            self.gap_low.add(max(0, earliest[end] - latest[end - 1]))
            self.gap_high.add(latest[end] - earliest[end - 1])

    def merge(self, other: Self) -> None:
        """Those of other answers of the stage."""
        for name in _SAMPLES:
            getattr(self, name).merge(getattr(other, name))
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.tpot_share_max = max(self.tpot_share_max, other.tpot_share_max)
        self.ready_ns.extend(other.ready_ns)
        self.late_ns.extend(other.late_ns)


def _unsure_at_first(latest: list[int], unsure: list[int]) -> list[int]:
    return [i for i in unsure if latest[i] == latest[0]]


def _at_least(share: float, events: int) -> float:
    """One token's share if so many of those that TPOT leaves out, as come at the first instant, came after it."""
    return share / (1 + events * share)


def earliest_ns(record: Record, unsure: list[int]) -> list[int]:
    """When each event can have come at the earliest: an unsure one not before the event, or bytes, before it.

    Nor before the instant at which it is known not to have been there.
    """
    if not unsure:
        return record.chunk_ns
    earliest = list(record.chunk_ns)
    since_ns = dict(zip(record.unsure, record.unsure_since_ns, strict=False))
    for i in unsure:
        before_ns = earliest[i - 1] if i else _before_first_ns(record)
        earliest[i] = min(earliest[i], max(before_ns, since_ns.get(i, before_ns)))
    return earliest


def _before_first_ns(record: Record) -> int:
    first_ns = record.chunk_ns[0]
    before = [ns for ns in (record.sent_ns, record.first_byte_ns) if ns is not None and ns < first_ns]
    return max(before, default=first_ns)
