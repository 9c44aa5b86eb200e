"""Records of a stage → rows of a regression: how long something took, and what was computed in that time. Pure.

A row is an answer after its first token: as many steps as it has further tokens, those who decoded beside it in each,
and the prompts whose first token fell into it, for they were computed in these steps. A prompt that was alone in the
engine makes another: its TTFT is one step (more, where it is longer than a step's budget) and what comes before.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

import msgspec

from withstand.record import Record, Status


class Row(msgspec.Struct, frozen=True):
    """``time_ns`` = step x steps + sequence x sequences + token x prefill_tokens + overhead x firsts."""

    at_ns: int
    time_ns: int
    steps: int
    sequences: int
    """Summed over the steps: how many decoded in each."""
    prefill_tokens: float
    firsts: int = 0
    """1 = it is a TTFT."""

    @property
    def terms(self) -> tuple[float, ...]:
        """The regressors."""
        return self.steps, self.sequences, self.prefill_tokens, self.firsts


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that can be used: all that the model has to do with."""

    sent_ns: int
    token_ns: tuple[int, ...]
    """Arrivals of its events."""
    prompt_tokens: int
    """That were computed."""
    whole_prompt_tokens: int
    output_tokens: int

    @property
    def first_ns(self) -> int:
        """Of the first token."""
        return self.token_ns[0]

    @property
    def last_ns(self) -> int:
        """Of the last."""
        return self.token_ns[-1]


def heard(record: Record) -> Heard | None:
    """None = it failed, was not streamed, or tells no tokens."""
    usable = record.status is Status.OK and record.streamed and record.chunk_ns and record.sent_ns is not None
    if not usable or not record.prompt_tokens or not record.output_tokens:
        return None
    assert record.sent_ns is not None
    return Heard(
        sent_ns=record.sent_ns,
        token_ns=tuple(record.chunk_ns),
        prompt_tokens=max(1, record.prompt_tokens - (record.cached_tokens or 0)),
        whole_prompt_tokens=record.prompt_tokens,
        output_tokens=record.output_tokens,
    )


def rows_of(answers: Sequence[Heard], budget: int) -> list[Row]:
    """All rows of one stage; ``budget`` = prompt tokens that go into a step."""
    room = _Room(answers)
    decoding = [_decoded(answer, room) for answer in answers if len(answer.token_ns) > 2]
    return [*decoding, *_alone(answers, budget)]


class _Room:
    """Who was there when."""

    def __init__(self, answers: Sequence[Heard]) -> None:
        self._firsts = sorted(answer.first_ns for answer in answers)
        self._lasts = sorted(answer.last_ns for answer in answers)
        order = sorted(answers, key=lambda answer: answer.first_ns)
        self._sums = [0]
        for answer in order:
            self._sums.append(self._sums[-1] + answer.prompt_tokens)

    def decoding(self, at_ns: float) -> int:
        return bisect_left(self._firsts, at_ns) - bisect_right(self._lasts, at_ns)

    def prefilled(self, after_ns: float, until_ns: float) -> int:
        """Tokens of the prompts whose first token came then."""
        return self._sums[bisect_right(self._firsts, until_ns)] - self._sums[bisect_right(self._firsts, after_ns)]


def _decoded(answer: Heard, room: _Room) -> Row:
    times = answer.token_ns
    gaps = [after - before for before, after in pairwise(times)]
    beside = [room.decoding((before + after) / 2) for before, after in pairwise(times)]
    steps = max(answer.output_tokens, len(times)) - 1
    share = steps / len(beside)  # events that hold several tokens stand for as many steps
    near_ns = median(gaps) / 4  # who speaks in the same step is heard a little sooner or later
    return Row(
        at_ns=answer.first_ns,
        time_ns=answer.last_ns - answer.first_ns,
        steps=steps,
        sequences=round(share * sum(max(1, count) for count in beside)),
        prefill_tokens=room.prefilled(answer.first_ns + near_ns, answer.last_ns + near_ns),
    )


def _alone(answers: Sequence[Heard], budget: int) -> Iterator[Row]:
    """Nobody else was in the engine between its request and its first token."""
    order = sorted(answers, key=lambda answer: answer.sent_ns)
    busy_until_ns = -1
    for place, answer in enumerate(order):
        following_ns = order[place + 1].sent_ns if place + 1 < len(order) else None
        if busy_until_ns < answer.sent_ns and (following_ns is None or following_ns > answer.first_ns):
            steps = -(-answer.prompt_tokens // budget)
            time_ns = answer.first_ns - answer.sent_ns
            yield Row(answer.sent_ns, time_ns, steps, 0, answer.prompt_tokens, firsts=1)
        busy_until_ns = max(busy_until_ns, answer.last_ns)
