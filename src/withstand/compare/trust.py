"""Which doubts forbid a verdict on a number, and what makes a comparison void. What forbids nothing is only shown.

What a doubt does to a number is ``metrics.reach``'s to say: with one that falls, or that nobody can know, nothing can
be concluded.
"""

from collections.abc import Iterable, Sequence

import msgspec

from withstand.compare.run import ComparedRun
from withstand.interop.values import number
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.reach import Circumstances, Effect, effect

_WORK_WITHIN = 0.05
MEDIAN_ANSWER = "output_tokens_p50"
"""A label by which one tool tells how long its answers were."""


class Weighed(msgspec.Struct, frozen=True):
    """A doubt, and what it does to the number in question."""

    doubt: Doubt
    effect: Effect


def weighed(doubts: Iterable[Doubt], number: str, of: Circumstances) -> tuple[Weighed, ...]:
    """Those that have to do with a number, such as ``ttft.p99``."""
    return tuple(Weighed(doubt, found) for doubt in doubts if (found := effect(doubt, number, of)))


def forbidding(against: Iterable[Weighed]) -> tuple[Doubt, ...]:
    """Those that forbid a verdict."""
    return tuple(one.doubt for one in against if one.effect is not Effect.BESIDE)


def is_other_work(doubts: Iterable[Doubt]) -> bool:
    """Whether what was done is not alike: then no ratio of times or tokens means anything."""
    kinds = (DoubtKind.LENGTHS_DIFFER, DoubtKind.CLAIMED_NOT_COUNTED)
    return any(doubt.blocking and doubt.kind in kinds for doubt in doubts)


def other_work(runs: Sequence[tuple[str, ComparedRun]]) -> Doubt | None:
    """Answers of different length are different work, whatever was asked."""
    lengths = [(label, length) for label, run in runs if (length := _answer_tokens(run))]
    if len(lengths) < 2:
        return None
    shortest, longest = min(lengths, key=_second), max(lengths, key=_second)
    if longest[1] <= shortest[1] * (1 + _WORK_WITHIN):
        return None
    return Doubt(
        DoubtKind.LENGTHS_DIFFER,
        f"{longest[0]} answered with {longest[1]:.1f} tokens a request, {shortest[0]} with {shortest[1]:.1f}: they did "
        "not do the same work.",
        "Prescribe the answers' length (ignore_eos), or compare TTFT and ITL only.",
        blocking=True,
    )


def _second(pair: tuple[str, float]) -> float:
    return pair[1]


def _answer_tokens(run: ComparedRun) -> float | None:
    counted = run.imported.numbers.get("retokenized_output_tokens") if run.imported else None
    total = counted or run.summary.total_output_tokens
    if total and run.summary.completed:
        return total / run.summary.completed
    return number(run.setting.labels.get(MEDIAN_ANSWER))


def other_definition(metric: str, runs: Sequence[tuple[str, ComparedRun]]) -> str | None:
    """Tools that mean different things by one name."""
    notes = {label: _definition(run.notes.get(metric)) for label, run in runs}
    if len(set(notes.values())) < 2:
        return None
    told = "; ".join(f"{label}: {note or 'as defined here'}" for label, note in notes.items())
    return f"{metric} is not defined alike ({told})."


def _definition(note: str | None) -> str | None:
    """Of a note what is about the definition: that a number was computed here does not make it another."""
    return None if note is None or note.startswith(("computed here", "printed as")) else note
