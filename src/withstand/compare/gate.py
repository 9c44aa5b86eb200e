"""A comparison as a gate: whether a side may pass. What cannot be shown does not fail it, and is said.

A side that gave nothing fails: there is no ratio to show it by, and nothing more to be seen.
"""

import math
from collections.abc import Iterator, Sequence

import msgspec

from withstand.compare.failures import failures
from withstand.compare.shape import Comparison, Difference, Gate, Row, Verdict

_NAMED_MAX = 3


class _Judged(msgspec.Struct, frozen=True):
    """One difference, and where it is."""

    side: str
    load: str
    row: Row
    difference: Difference

    @property
    def loss_percent(self) -> float:
        """Of the baseline, positive = worse, less what our own slowness may have made of it."""
        percent = self.difference.left_percent or 0.0
        return percent if self.row.lower_is_better else -percent


def gated(comparison: Comparison, percent: float) -> Comparison:
    """With its gate: a side fails where it is shown to be worse by more than ``percent``, or gave nothing."""
    return msgspec.structs.replace(comparison, gate=_gate(comparison, percent))


def _gate(comparison: Comparison, percent: float) -> Gate:
    judged = list(_judged(comparison))
    failed = [one for one in judged if one.difference.verdict is Verdict.WORSE and one.loss_percent > percent]
    reasons = failures(comparison.sides, comparison.groups)
    reasons += [f"Slower by more than {percent:g} %: {_where(comparison, failed)}"] if failed else []
    if reasons:
        return Gate(failed=True, sentence=f"{'. '.join(reasons)}.")
    blind = sum(_is_blind(one.difference, percent) for one in judged)
    lost = _lost(comparison)
    if blind == len(judged):
        told = f"No regression is shown, but this data could not have shown one of {percent:g} % anywhere{lost}."
        return Gate(failed=False, sentence=told)
    unseen = f"; in {blind} of {len(judged)} comparisons it could not have been shown" if blind else ""
    return Gate(failed=False, sentence=f"No regression of more than {percent:g} % is shown{unseen}{lost}.")


def _judged(comparison: Comparison) -> Iterator[_Judged]:
    for group in comparison.groups:
        for row in group.rows:
            for side, difference in zip(comparison.sides, row.differences, strict=True):
                if difference:
                    yield _Judged(side.label, group.label, row, difference)


def _is_blind(difference: Difference, percent: float) -> bool:
    return difference.verdict is Verdict.UNKNOWN or (difference.shows_from_percent or math.inf) > percent


def _where(comparison: Comparison, failed: Sequence[_Judged]) -> str:
    """``Mean TTFT at 5 req/s +20.0 %``; of several sides each has its name."""
    several = len(comparison.sides) > 2
    told = [
        f"{f'{one.side}: ' if several else ''}{one.row.title} at {one.load} {one.difference.percent:+.1f} %"
        for one in failed[:_NAMED_MAX]
    ]
    more = f", and {len(failed) - _NAMED_MAX} more" if len(failed) > _NAMED_MAX else ""
    return "; ".join(told) + more


def _lost(comparison: Comparison) -> str:
    """A stage or a run that is missing is no regression that could be seen."""
    alone = len({(one.side, one.what) for one in comparison.unmatched})
    lost = alone + sum(not volume.runs for group in comparison.groups for volume in group.volumes)
    told = f"; {lost} of what was measured {'has' if lost == 1 else 'have'} no equal on the other side" if lost else ""
    empty = [source for side in comparison.sides for source in side.empty]
    return told + (f"; nothing was measured in {', '.join(empty[:_NAMED_MAX])}" if empty else "")
