"""Compares what was measured, whoever measured it, and judges it as a gate: what ``withstand compare`` does."""

import math
from collections.abc import Sequence

import msgspec

from withstand.app.subjects import sides_of
from withstand.compare.build import Options, compare
from withstand.compare.shape import Comparison, Difference, Row, Verdict

GOOD, MISSED = 0, 1


class Gate(msgspec.Struct, frozen=True):
    """Whether a side may pass: ``exit_code`` 1 where a regression beyond the threshold is shown."""

    exit_code: int
    sentence: str


def compare_paths(arguments: Sequence[str], by: str | None, options: Options) -> Comparison:
    """Each side against the first.

    Raises:
        WithstandError: a path cannot be read, or its runs cannot be compared.
    """
    return compare(sides_of(arguments, by), options)


def gate(comparison: Comparison, percent: float) -> Gate:
    """A side fails where it is shown to be worse by more than ``percent``; what cannot be shown does not fail it."""
    judged = [(group.label, row, d) for group in comparison.groups for row in group.rows for d in row.differences if d]
    failed = [item for item in judged if item[2].verdict is Verdict.WORSE and _loss(item[1], item[2]) > percent]
    if failed:
        where = "; ".join(f"{row.title} at {label} {d.percent:+.1f} %" for label, row, d in failed[:3])
        more = f", and {len(failed) - 3} more" if len(failed) > 3 else ""
        return Gate(MISSED, f"Slower by more than {percent:g} %: {where}{more}.")
    blind = [d for _, _, d in judged if d.verdict is Verdict.UNKNOWN or (d.shows_from_percent or math.inf) > percent]
    if len(blind) == len(judged):
        return Gate(GOOD, f"No regression is shown, but this data could not have shown one of {percent:g} % anywhere.")
    unseen = f"; in {len(blind)} of {len(judged)} comparisons it could not have been shown" if blind else ""
    return Gate(GOOD, f"No regression of more than {percent:g} % is shown{unseen}.")


def _loss(row: Row, difference: Difference) -> float:
    """In percent of the baseline, positive = worse."""
    percent = difference.percent or 0.0
    return percent if row.lower_is_better else -percent
