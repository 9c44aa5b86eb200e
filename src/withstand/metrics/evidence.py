"""What a doubt needs to know beyond the summary: sums and shapes over a stage's good answers. Facts, no verdicts."""

import re
from array import array
from collections import Counter
from operator import eq
from typing import Self

from withstand.metrics.latency import Timing
from withstand.metrics.ledger import exceeds
from withstand.metrics.sample import Sample
from withstand.metrics.trend import Growth, growth
from withstand.record import Clock, Record, TokensFrom

LONG_ANSWER_TOKENS = 8
"""From here on an answer is long enough to show whether it was streamed."""
_HEAD_LENGTH = 48
_ERROR_HEAD = re.compile(
    r"\b(error|exception|traceback|failed|failure|rate.?limit\w*|too many requests|time.?out|timed out|unavailable"
    r"|bad gateway|connection refused|unauthori[sz]ed|forbidden)\b",
    re.IGNORECASE,
)
_MARGIN = 0.1
_REGULAR_SHARE = 0.6
"""Of the events of answers that share reads: a client that looks away catches now one, now several."""


_SUMS = (
    *("first_turns", "user_stamped", "prompt_tokens", "cached_tokens", "step_tokens", "long_answers", "in_one_piece"),
)


class Told:
    """Tokens as the server tells them event by event, beside the events."""

    __slots__ = ("events", "tokens")

    def __init__(self) -> None:
        self.tokens = 0
        self.events = 0

    def add(self, tokens: int, events: int) -> None:
        """One answer."""
        self.tokens += tokens
        self.events += events

    def merge(self, other: Self) -> None:
        """Those of other answers."""
        self.add(other.tokens, other.events)


class Lengths:
    """Output lengths as asked beside those that came, by one who counted."""

    __slots__ = ("_is_same", "answers", "cut", "differing", "longer", "requested", "returned")

    def __init__(self, *, exact: bool) -> None:
        """``exact``: a single token is a difference; it is none of a text that is cut into tokens anew."""
        self._is_same = eq if exact else _about_the_same
        self.answers = 0
        self.requested = 0
        self.returned = 0
        self.differing = 0
        self.longer = 0
        self.cut = 0
        """Shorter than asked, although it claims to have ended for its length."""

    def add(self, requested: int, returned: int, finish_reason: str | None) -> None:
        """One answer."""
        self.answers += 1
        self.requested += requested
        self.returned += returned
        if self._is_same(requested, returned):
            return
        self.differing += 1
        self.longer += returned > requested
        self.cut += returned < requested and finish_reason == "length"

    def merge(self, other: Self) -> None:
        """Those of other answers."""
        for name in ("answers", "requested", "returned", "differing", "longer", "cut"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def _about_the_same(count: int, other: int) -> bool:
    return not exceeds(count, other, 1) and not exceeds(other, count, 1)


class Evidence:
    """Folded over the records of one stage."""

    def __init__(self) -> None:
        self.first_turns = 0
        self.user_stamped = 0
        self.told = Told()
        self.lengths = Lengths(exact=True)
        """By the server."""
        self.text_lengths = Lengths(exact=False)
        """By a tokenizer, of answers that the server has not counted."""
        self.step_tokens = 0
        """Output of the calls of its model that an agent tells of, of answers that it has counted itself."""
        self.prompt_tokens = 0
        self.cached_tokens = 0
        """Both over first turns whose cached tokens are known: later turns repeat their history by nature."""
        self.long_answers = 0
        self.in_one_piece = 0
        """Long answers, all of whose tokens came at one instant."""
        self.decode_ns = Sample()
        self.decoded_tokens = Sample()
        self.error_heads: Counter[str] = Counter()
        self._reads: Counter[int] = Counter()
        """Events that share a stamp, by their number, of answers with unsure ones."""
        self._scheduled_ns = array("q")
        self._response_ns = array("q")

    def add(self, record: Record, timing: Timing | None) -> None:
        """One request; ``timing`` is None unless its answer was good."""
        self.first_turns += record.turn == 0
        if timing is None:
            return
        self.user_stamped += record.clock is Clock.USER
        self._add_tokens(record)
        self._add_head(record)
        if record.streamed:
            self._add_decode(record)
        if record.scheduled_ns is not None and timing.response_ns is not None:
            self._scheduled_ns.append(record.scheduled_ns)
            self._response_ns.append(timing.response_ns)

    def merge(self, other: Self) -> None:
        """That of other requests of the stage."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("told", "lengths", "text_lengths", "decode_ns", "decoded_tokens"):
            getattr(self, name).merge(getattr(other, name))
        self.error_heads.update(other.error_heads)
        self._reads.update(other._reads)
        self._scheduled_ns.extend(other._scheduled_ns)
        self._response_ns.extend(other._response_ns)

    def _add_tokens(self, record: Record) -> None:
        if record.turn == 0 and record.cached_tokens is not None and record.prompt_tokens:
            self.prompt_tokens += record.prompt_tokens
            self.cached_tokens += record.cached_tokens
        if record.tokens_from is TokensFrom.SERVER:
            self.step_tokens += sum(step.output_tokens or 0 for step in record.steps)
        counted, asked = record.output_tokens, record.requested_output_tokens
        by = {TokensFrom.SERVER: self.lengths, TokensFrom.TOKENIZER: self.text_lengths}
        lengths = by.get(record.tokens_from) if record.tokens_from else None
        if lengths and counted is not None and asked is not None:
            lengths.add(asked, counted, record.finish_reason)

    def events_a_read(self) -> int | None:
        """How many events came at once in most reads, by weight: several, and always as many, are the server's way."""
        size = max(self._reads, key=lambda n: (n * self._reads[n], n), default=1)
        weight = sum(n * reads for n, reads in self._reads.items())
        return size if size > 1 and size * self._reads[size] >= _REGULAR_SHARE * weight else None

    def _add_decode(self, record: Record) -> None:
        if record.unsure:
            self._reads.update(Counter(record.chunk_ns).values())
        if record.chunk_tokens is not None:
            self.told.add(sum(record.chunk_tokens), len(record.chunk_ns))
        if record.output_tokens is None or record.output_tokens < LONG_ANSWER_TOKENS or not record.chunk_ns:
            return
        decode_ns = record.chunk_ns[-1] - record.chunk_ns[0]
        self.long_answers += 1
        self.in_one_piece += decode_ns == 0
        self.decode_ns.add(decode_ns)
        self.decoded_tokens.add(record.output_tokens)

    def _add_head(self, record: Record) -> None:
        head = (record.text_head or "")[:_HEAD_LENGTH]
        if _ERROR_HEAD.search(head):
            self.error_heads[re.sub(r"\d+", "0", head.strip().lower())] += 1

    def response_growth(self) -> Growth | None:
        """Whether the time from schedule to last token grew, in ns."""
        return growth(sorted(zip(self._scheduled_ns, self._response_ns, strict=True)))

    def paces(self) -> tuple[float, float] | None:
        """(scheduled, ended) requests a second of the good ones, each over its middle 80 %: without fill and drain."""
        ended = [due + took for due, took in zip(self._scheduled_ns, self._response_ns, strict=True)]
        scheduled_rps, ended_rps = _middle_rate(sorted(self._scheduled_ns)), _middle_rate(sorted(ended))
        return None if scheduled_rps is None or ended_rps is None else (scheduled_rps, ended_rps)

    def unanswered_at_the_end(self) -> tuple[int, int]:
        """(Good requests still on their way when the last one was due, all of them)."""
        last_ns = max(self._scheduled_ns, default=0)
        pairs = zip(self._scheduled_ns, self._response_ns, strict=True)
        return sum(due + took > last_ns for due, took in pairs), len(self._scheduled_ns)


def _middle_rate(instants_ns: list[int]) -> float | None:
    low = int(len(instants_ns) * _MARGIN)
    high = len(instants_ns) - 1 - low
    span_ns = instants_ns[high] - instants_ns[low] if high > low else 0
    return (high - low) / (span_ns / 1e9) if span_ns else None
