"""When things happened in a stage: schedule, sends, ends and tokens over time. Rates, windows and charts read it.

Tokens are kept in bins of 100 ms of the run's clock, everything else as instants. It knows nothing of latencies.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain, repeat
from operator import floordiv
from typing import Self

from withstand.metrics.latency import last_token_ns
from withstand.record import OUR_DOING, Record, Status

BIN_NS = 100_000_000
BINS_PER_S = 10


class Flow:
    """Instants of one stage, in ns since the run's epoch; unsorted until ``course`` or a caller sorts them."""

    def __init__(self) -> None:
        self.scheduled = array("q")
        self.sent = array("q")
        self.left = array("q")
        """When the request that stands at the same place in ``sent`` was over."""
        self.unreached = array("q")
        """Begin and end of each try that came to no send, and not by our doing."""
        self.completed = array("q")
        self.failed = array("q")
        self.tokens_by_bin: defaultdict[int, float] = defaultdict(float)

    def add(self, record: Record) -> None:
        """One request, whatever became of it."""
        if record.scheduled_ns is not None:
            self.scheduled.append(record.scheduled_ns)
        if record.sent_ns is not None:
            self.sent.append(record.sent_ns)
        if (over_ns := _over_ns(record)) is not None:
            self._add_end(record, over_ns)
            if record.sent_ns is None and record.started_ns is not None and record.status not in OUR_DOING:
                self.unreached.extend((record.started_ns, over_ns))

    def _add_end(self, record: Record, over_ns: int) -> None:
        if record.sent_ns is not None:
            self.left.append(over_ns)
        if record.status is Status.OK:
            self.completed.append(over_ns)
            self._add_tokens(record)
        else:
            self.failed.append(over_ns)

    def _add_tokens(self, record: Record) -> None:
        """Where the server tells an event's tokens, those; else every event has an equal share of the answer's."""
        events_ns = record.chunk_ns if record.streamed else []
        if record.chunk_tokens and len(record.chunk_tokens) == len(events_ns):
            for event_ns, tokens in zip(events_ns, record.chunk_tokens, strict=True):
                self.tokens_by_bin[event_ns // BIN_NS] += tokens
        elif record.output_tokens and events_ns:
            share = record.output_tokens / len(events_ns)
            for slot, events in Counter(map(floordiv, events_ns, repeat(BIN_NS))).items():
                self.tokens_by_bin[slot] += events * share
        elif record.output_tokens and (last_ns := last_token_ns(record)) is not None:
            self.tokens_by_bin[last_ns // BIN_NS] += record.output_tokens

    def merge(self, other: Self) -> None:
        """What else happened in the stage."""
        for name in ("scheduled", "sent", "left", "unreached", "completed", "failed"):
            getattr(self, name).extend(getattr(other, name))
        for slot, tokens in other.tokens_by_bin.items():
            self.tokens_by_bin[slot] += tokens

    @property
    def begin_ns(self) -> int | None:
        """The first send, or the first try before it; None where nothing was sent."""
        return min(chain(self.sent, self.unreached)) if self.sent else None

    @property
    def end_ns(self) -> int | None:
        """The last end of what was sent, or tried behind it."""
        return max(chain(self.left, self.unreached)) if self.left else None

    def course(self) -> Iterator[tuple[int, int]]:
        """(instant, requests in flight from then on), at every change. One that ends as another starts is not both."""
        starts, ends = sorted(self.sent), sorted(self.left)
        begun = over = 0
        while over < len(ends):
            now_ns = min(starts[begun], ends[over]) if begun < len(starts) else ends[over]
            while begun < len(starts) and starts[begun] == now_ns:
                begun += 1
            while over < len(ends) and ends[over] == now_ns:
                over += 1
            yield now_ns, begun - over


def _over_ns(record: Record) -> int | None:
    """The last instant that is known of a request that was taken up; None if it never was."""
    last_ns = record.chunk_ns[-1] if record.chunk_ns else None
    known = (record.started_ns, record.sent_ns, record.first_byte_ns, last_ns, record.end_ns)
    return max((instant_ns for instant_ns in known if instant_ns is not None), default=None)
