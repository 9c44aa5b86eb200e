"""What our own error may have done to a ratio: a difference that is larger is one, however slow the client was."""

import math
from collections.abc import Iterable, Sequence

from withstand.compare.run import ComparedRun
from withstand.metrics.bounds import share_moved
from withstand.metrics.doubts import Doubt, DoubtKind


def allowance(forbidden: Sequence[Doubt], sides: Iterable[Sequence[ComparedRun]], number: str) -> float | None:
    """Of the log ratio of two sides' ``number``; None = something else is wrong with it, or nobody knows how much."""
    if not forbidden or any(doubt.kind is not DoubtKind.CLIENT_BOUND for doubt in forbidden):
        return None
    shares = [[share_moved(run.summary, number) for run in runs] for runs in sides]
    worst = [max(known, default=math.inf) for of_side in shares if (known := [_or_all(share) for share in of_side])]
    return -sum(map(math.log1p, (-share for share in worst))) if max(worst) < 1 else None


def _or_all(share: float | None) -> float:
    return math.inf if share is None else share
