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
    worst = [max((_share(run, number) for run in runs), default=math.inf) for runs in sides]
    return -sum(math.log1p(-share) for share in worst) if max(worst) < 1 else None


def _share(run: ComparedRun, number: str) -> float:
    share = share_moved(run.summary, number)
    return math.inf if share is None else share
