"""Holds what we say of a case against what is right.

Counts, names and doubts must be right in every answer. Of times, the error of each answer is taken and their median
must be small: a machine that is busy for a moment puts off one answer, a wrong client is wrong in all of them. What
is wrong only in answers that the machine held up is neither right nor wrong: nothing is proved.
"""

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Final

import msgspec

from withstand.metrics.context import StageContext
from withstand.metrics.doubts import DoubtKind
from withstand.metrics.latency import NS_PER_MS, unsure_events
from withstand.metrics.rules.stream import UNSURE_SHARE
from withstand.metrics.summarize import summarize_stage
from withstand.record import Clock, Record, Status
from withstand.spec import Stage
from withstand.testing.selftest.cases import Case
from withstand.testing.selftest.held import gave_up_in_a_stall, was_held
from withstand.testing.selftest.play import Pair, Played
from withstand.testing.selftest.timing import NAMES, Timing, timing
from withstand.testing.truth.right import Right

TOLERANCE_MS: Final = {Clock.KERNEL: 1.0, Clock.USER: 5.0}
_EARLY_MS_MAX: Final = 0.1
"""The kernel's stamps come from another clock; its distance is known to a few µs."""

Value = str | int | float | bool | None


class Check(msgspec.Struct, frozen=True):
    """One value."""

    what: str
    right: Value
    ours: Value
    ok: bool | None
    """None = nothing is proved: the machine held the answers up."""
    error_ms: float | None = None
    """Median over the answers; None = it is no time."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One case."""

    case: Case
    answers: int
    checks: tuple[Check, ...]
    timings: tuple[Timing, ...] = ()

    @property
    def ok(self) -> bool | None:
        """Whether all is right; None = nothing is wrong, but something is not proved."""
        found = {check.ok for check in self.checks}
        return False if False in found else None if None in found else True

    @property
    def only_times_wrong(self) -> bool:
        """Whether counts, names and doubts are right, and some time is not."""
        return self.ok is False and all(check.ok for check in self.checks if check.error_ms is None)

    @property
    def usual(self) -> Timing | None:
        """The answer that stands for all: of those that know most times, its worst is off as the median one's."""
        most = max((len(one.values) for one in self.timings), default=0)
        best = sorted((one for one in self.timings if len(one.values) == most), key=lambda one: one.worst_ms)
        return best[len(best) // 2] if most else None

    def check(self, what: str) -> Check | None:
        """One of the checks."""
        return next((check for check in self.checks if check.what == what), None)


def judged(played: Played, tolerance_ms: float) -> Judged:
    """One case, value by value."""
    told = [pair for pair in played.pairs if not gave_up_in_a_stall(pair)]
    heard = [pair for pair in told if pair.right is not None]
    exact = [_arrived(len(played.pairs), len(told), len(heard)), *_exact(heard), *_doubted(heard, len(played.pairs))]
    timings = tuple(_timings(heard, tolerance_ms))
    times = [check for name in NAMES for check in _timed(name, timings, tolerance_ms)]
    checks = (*exact, *_not_early(timings), *times)
    return Judged(case=played.case, answers=len(played.pairs), checks=checks, timings=timings)


def _arrived(planned: int, told: int, heard: int) -> Check:
    """Each request has reached the server; those that a stall ended tell nothing of it."""
    return Check("answers", planned, heard, ok=False if heard < told else None if told < planned else True)


# What must be right in every answer.


def _exact(heard: Sequence[Pair]) -> Iterator[Check]:
    """The first answer that is wrong is shown, else the first. Of a failure only the status is told."""
    both = [(_values(pair.right), _ours(pair.record)) for pair in heard if pair.right is not None]
    for what in both[0][0] if both else ():
        values = [(right[what], ours.get(what)) for right, ours in both]
        wrong = [value for value in values if value[0] != value[1]]
        right, ours = (wrong or values)[0]
        yield Check(what, right, ours, ok=not wrong)


def _values(right: Right) -> dict[str, Value]:
    values: dict[str, Value] = {"status": right.status, "http_status": right.http_status}
    if right.status is not Status.OK:
        return values
    return values | {
        "streamed": right.streamed,
        "output_tokens": right.output_tokens,
        "tokens_from": right.tokens_from,
        "output_events": right.output_events,
        "finish_reason": right.finish_reason,
    }


def _ours(record: Record) -> dict[str, Value]:
    return {
        "status": record.status,
        "http_status": record.http_status,
        "streamed": record.streamed,
        "output_tokens": record.output_tokens,
        "tokens_from": record.tokens_from,
        "output_events": len(record.chunk_ns) if record.streamed else None,
        "finish_reason": record.finish_reason,
    }


def _doubted(heard: Sequence[Pair], planned: int) -> Iterator[Check]:
    """A number that must be doubted is, by the judge that reports use.

    Too few answers are no ground for a doubt, and gaps that we could not see because we looked away are none either.
    """
    wanted = next((pair.right.doubt for pair in heard if pair.right and pair.right.doubt), None)
    if wanted is not None:
        records = [pair.record for pair in heard]
        found = wanted in _doubts(records)
        if found or wanted is not DoubtKind.SHARED_READS or any(map(unsure_events, records)):
            proved = len(heard) == planned and _proves_missing(wanted, records)
            yield Check("doubt", wanted, wanted if found else None, ok=found or (False if proved else None))


def _proves_missing(wanted: DoubtKind, records: Sequence[Record]) -> bool:
    """The stamp of events that were written together is theirs if the read was in time: only a late one is doubted."""
    unsure = sum(len(unsure_events(record)) for record in records)
    if wanted is DoubtKind.SHARED_READS:
        return unsure > UNSURE_SHARE * sum(len(record.chunk_ns) for record in records)
    return not unsure


def _doubts(records: Iterable[Record]) -> set[DoubtKind]:
    ours = list(records)
    summary = summarize_stage(ours, StageContext(stage=Stage(num_prompts=len(ours))))
    return {doubt.kind for doubt in summary.doubts}


# Times.


def _timings(heard: Sequence[Pair], tolerance_ms: float) -> Iterator[Timing]:
    for pair in heard:
        if _comparable(pair):
            assert pair.served is not None
            held = was_held(pair, tolerance_ms * NS_PER_MS)
            yield timing(pair.record, pair.served, pair.epoch_ns, held=held)


def _comparable(pair: Pair) -> bool:
    """Both are a success with the same events; else another check has said so."""
    right, record = pair.right, pair.record
    if right is None or right.status is not Status.OK or record.status is not Status.OK:
        return False
    return not record.streamed or len(record.chunk_ns) == right.output_events


def _not_early(timings: Sequence[Timing]) -> Iterator[Check]:
    """Nobody can see an event before it is written."""
    if timings:
        early_ms = max(one.early_ms for one in timings)
        yield Check("seen_early_ms", 0.0, max(0.0, early_ms), ok=early_ms <= _EARLY_MS_MAX)


def _timed(name: str, timings: Sequence[Timing], tolerance_ms: float) -> Iterator[Check]:
    """By the median error; the log's own uncertainty is allowed for. The answer with that error is shown."""
    known = sorted((one for one in timings if name in one.values), key=lambda one: one.error_ms(name))
    if known:
        typical = known[len(known) // 2]
        ok = _verdict(name, timings, tolerance_ms)
        yield Check(name, *typical.values[name], ok=ok, error_ms=typical.error_ms(name))


def _verdict(name: str, timings: Sequence[Timing], tolerance_ms: float) -> bool | None:
    """What is wrong is so in answers that were not held up and are over half of all; else nothing is proved."""
    if _beyond_ms(name, timings) <= tolerance_ms:
        return True
    quiet = [one for one in timings if name in one.values and not one.held]
    if 2 * len(quiet) <= len(timings):
        return None
    return _beyond_ms(name, quiet) <= tolerance_ms


def _beyond_ms(name: str, timings: Sequence[Timing]) -> float:
    return median(max(0.0, one.error_ms(name) - one.allowed_ms(name)) for one in timings if name in one.values)
