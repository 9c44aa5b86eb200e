"""The token ledger: a stage's good answers by everybody who counted their tokens, and where the counts disagree.

Each column says of how many answers it is known; a check looks only at answers that both sides have counted. The length
that was asked for stands beside the counts and is never taken for one. It knows nothing of times.
"""

from collections.abc import Callable, Mapping
from typing import Self

import msgspec

from withstand.record import Record, Status, TokensFrom

RATIO = 1.05
"""Up to here, and one token an answer (its end token), two counts are the same."""


class Column(msgspec.Struct, frozen=True):
    """One who counted: tokens (or events) of the answers that it knows."""

    answers: int = 0
    tokens: int = 0


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Two columns held against each other, over the answers that both know."""

    left: str
    right: str
    answers: int = 0
    left_tokens: int = 0
    right_tokens: int = 0
    differing: int = 0
    """Answers whose two counts are not the same."""
    worst: int | None = None
    """The id of the answer whose counts lie furthest apart; None if none differ."""

    @property
    def ratio(self) -> float | None:
        """Left over right."""
        return self.left_tokens / self.right_tokens if self.right_tokens else None

    @property
    def more(self) -> bool:
        """The left side has counted more."""
        return exceeds(self.left_tokens, self.right_tokens, self.answers)

    @property
    def fewer(self) -> bool:
        """The right side has counted more."""
        return exceeds(self.right_tokens, self.left_tokens, self.answers)

    @property
    def differs(self) -> bool:
        """The sums are not the same."""
        return self.more or self.fewer


def exceeds(count: int, other: int, answers: int) -> bool:
    """Whether a count is the larger by more than may be, each of the answers having an end token without text."""
    return count > RATIO * other + answers


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """One stage. ``tokens_from`` of its summary says which column was used."""

    server: Column = Column()
    """By the answer's ``usage``."""
    text: Column = Column()
    """By a tokenizer, over the answer's text."""
    events: Column = Column()
    """Events with output, of streams."""
    reasoning: Column = Column()
    """Output tokens that the server calls reasoning."""
    reasoning_events: Column = Column()
    prompt: Column = Column()
    cached: Column = Column()
    """Prompt tokens that the server had in its cache."""
    requested: Column = Column()
    checks: tuple[Check, ...] = ()
    text_by: str | None = None
    """The tokenizer."""
    text_exact: bool = True
    """It is the model's own."""

    def columns(self) -> list[tuple[str, Column]]:
        """Name and column, in the order of trust."""
        return [(name, getattr(self, name)) for name in _READERS]

    def check(self, left: str, right: str) -> Check:
        """The one of two columns; without an answer where nobody could compare them."""
        unknown = Check(left=left, right=right)
        return next((check for check in self.checks if (check.left, check.right) == (left, right)), unknown)

    @property
    def disagreements(self) -> tuple[Check, ...]:
        """What differs and should not.

        A tokenizer that is not the model's proves nothing; and where the server has counted, its two checks say all.
        """
        idle = {("text", "events")} if self.server.answers else set()
        idle |= set() if self.text_exact else {("server", "text"), ("text", "events")}
        return tuple(check for check in self.checks if check.differs and (check.left, check.right) not in idle)


_READERS: Mapping[str, Callable[[Record], int | None]] = {
    "server": lambda record: record.output_tokens if record.tokens_from is TokensFrom.SERVER else None,
    "text": lambda record: record.text_tokens,
    "events": lambda record: len(record.chunk_ns) if record.streamed else None,
    "reasoning": lambda record: record.reasoning_tokens,
    "reasoning_events": lambda record: record.reasoning_events,
    "prompt": lambda record: record.prompt_tokens,
    "cached": lambda record: record.cached_tokens,
    "requested": lambda record: record.requested_output_tokens,
}
_CHECKS = (("server", "text"), ("server", "events"), ("text", "events"))


class Accounts:
    """The ledger while it is written, record by record."""

    def __init__(self) -> None:
        self._columns = {name: [0, 0] for name in _READERS}
        self._checks = [_Balance(left, right) for left, right in _CHECKS]

    def add(self, record: Record) -> None:
        """One request; only good answers are counted."""
        if record.status is not Status.OK:
            return
        counts = {name: read(record) for name, read in _READERS.items()}
        for name, count in counts.items():
            if count is not None:
                self._columns[name][0] += 1
                self._columns[name][1] += count
        if record.chunk_tokens is not None:  # the server tells that its events are no tokens: nothing to compare
            counts["events"] = None
        for balance in self._checks:
            balance.add(record.id, counts[balance.left], counts[balance.right])

    def merge(self, other: Self) -> None:
        """Those of other answers of the stage."""
        for name, (answers, tokens) in other._columns.items():
            self._columns[name][0] += answers
            self._columns[name][1] += tokens
        for mine, theirs in zip(self._checks, other._checks, strict=True):
            mine.merge(theirs)

    def ledger(self, *, text_by: str | None, text_exact: bool) -> Ledger:
        """What has been written so far."""
        columns = {name: Column(answers, tokens) for name, (answers, tokens) in self._columns.items()}
        is_counted = columns["text"].answers > 0
        return Ledger(
            **columns,
            checks=tuple(balance.check() for balance in self._checks if balance.answers),
            text_by=text_by if is_counted else None,
            text_exact=text_exact or not is_counted,
        )


class _Balance:
    """A check while it is made."""

    def __init__(self, left: str, right: str) -> None:
        self.left, self.right = left, right
        self.answers = 0
        self._left_tokens = self._right_tokens = self._differing = 0
        self._worst: tuple[float, int] | None = None

    def add(self, answer: int, left: int | None, right: int | None) -> None:
        if left is None or right is None:
            return
        self.answers += 1
        self._left_tokens += left
        self._right_tokens += right
        if exceeds(max(left, right), min(left, right), 1):
            self._differing += 1
            candidate = (min(left, right) / max(left, right), answer)
            self._worst = min(self._worst or candidate, candidate)

    def merge(self, other: Self) -> None:
        self.answers += other.answers
        self._left_tokens += other._left_tokens
        self._right_tokens += other._right_tokens
        self._differing += other._differing
        self._worst = min((worst for worst in (self._worst, other._worst) if worst), default=None)

    def check(self) -> Check:
        return Check(
            left=self.left,
            right=self.right,
            answers=self.answers,
            left_tokens=self._left_tokens,
            right_tokens=self._right_tokens,
            differing=self._differing,
            worst=self._worst[1] if self._worst else None,
        )
