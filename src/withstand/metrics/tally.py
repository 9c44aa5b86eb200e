"""Counts of a stage: outcomes, tokens, who counted them, how many answers were good by the limits."""

from collections import Counter
from typing import Self

from withstand.metrics import rates
from withstand.metrics.latency import Timing
from withstand.record import Record
from withstand.spec import Slo

_ERROR_LENGTH = 200
_SUMS = ("attempted", "completed", "good")
_TOKENS = ("input_tokens", "output_tokens", "good_output_tokens")
_COUNTERS = ("statuses", "errors", "tokens_from", "finish_reasons")


class Tally:
    """Folded over the records of one stage."""

    def __init__(self, slo: Slo) -> None:
        self._slo = slo
        self.attempted = self.completed = self.good = 0
        self.input_tokens: int | None = 0
        self.output_tokens: int | None = 0
        self.good_output_tokens: int | None = 0
        self.statuses: Counter[str] = Counter()
        self.errors: Counter[tuple[str, str]] = Counter()
        """By status and text."""
        self.tokens_from: Counter[str] = Counter()
        self.finish_reasons: Counter[str] = Counter()

    def add(self, record: Record, timing: Timing | None) -> None:
        """One request; ``timing`` is None unless its answer was good."""
        self.attempted += 1
        self.statuses[record.status.value] += 1
        if timing is not None:
            self._add_answer(record, timing)
        elif record.error:
            self.errors[record.status.value, in_one_line(record.error)] += 1

    def _add_answer(self, record: Record, timing: Timing) -> None:
        self.completed += 1
        if rates.is_good(record, timing, self._slo):
            self.good += 1
            self.good_output_tokens = plus(self.good_output_tokens, record.output_tokens)
        self.input_tokens = plus(self.input_tokens, record.prompt_tokens)
        self.output_tokens = plus(self.output_tokens, record.output_tokens)
        if record.tokens_from is not None:
            self.tokens_from[record.tokens_from.value] += 1
        if record.finish_reason is not None:
            self.finish_reasons[record.finish_reason] += 1

    def merge(self, other: Self) -> None:
        """Those of other requests of the stage."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _COUNTERS:
            getattr(self, name).update(getattr(other, name))
        for name in _TOKENS:
            setattr(self, name, plus(getattr(self, name), getattr(other, name)))


def in_one_line(text: str) -> str:
    """Its last line: in a traceback, which foreign files may hold, it is the one that says what happened."""
    return text.strip().rpartition("\n")[2][:_ERROR_LENGTH]


def plus(total: int | None, tokens: int | None) -> int | None:
    """A sum with an unknown part is unknown: a part of it would pass for the whole."""
    return None if total is None or tokens is None else total + tokens


def by_text(errors: Counter[tuple[str, str]]) -> Counter[str]:
    """Whatever their status."""
    texts: Counter[str] = Counter()
    for (_, text), count in errors.items():
        texts[text] += count
    return texts


def by_status(errors: Counter[tuple[str, str]], most: int) -> dict[str, dict[str, int]]:
    """The commonest of each."""
    found: dict[str, Counter[str]] = {}
    for (status, text), count in errors.items():
        found.setdefault(status, Counter())[text] += count
    return {status: commonest(found[status], most) for status in sorted(found)}


def commonest(counter: Counter[str], most: int | None = None) -> dict[str, int]:
    """Most often first, then by name: whoever counted first does not matter."""
    return dict(sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:most])
