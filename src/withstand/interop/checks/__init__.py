"""Reasons to doubt a stranger's numbers, found from the file alone: pure functions over runs, each with its arithmetic.

One run is put before the rules of ``counts``, ``limits``, ``times`` and ``tokens``; several before those of ``across``
and ``series``.
"""

from collections.abc import Sequence

from withstand.interop.checks import across, counts, limits, series, times, tokens
from withstand.interop.shape import ImportedRun
from withstand.metrics.doubts import Doubt

_RULES = (*times.RULES, *counts.RULES, *limits.RULES, *tokens.RULES)
_JOINT = (*across.RULES, *series.RULES)


def run_doubts(run: ImportedRun) -> tuple[Doubt, ...]:
    """Every doubt that one run raises by itself, blocking ones first."""
    doubts = [doubt for rule in _RULES if (doubt := rule(run))]
    return tuple(sorted(doubts, key=lambda doubt: not doubt.blocking))


def joint_doubts(runs: Sequence[ImportedRun]) -> tuple[Doubt, ...]:
    """What only several runs together show."""
    return tuple(doubt for rule in _JOINT if (doubt := rule(runs)))


__all__ = ["joint_doubts", "run_doubts"]
