"""A share of counts that hang together, and between which bounds it lies: Clopper and Pearson with fewer counts.

Requests that queue behind each other are worth fewer independent ones: n over the memory of what they waited.
"""

from collections.abc import Callable, Sequence

import msgspec

from withstand.compare.student import beta_share
from withstand.metrics.summary import Interval

_TAIL = 0.025
"""What a 95 % interval leaves out on each side."""
_HALVINGS = 40


class Share(msgspec.Struct, frozen=True):
    """``broken`` of ``of``, each as many as independent ones would be worth it."""

    broken: float
    of: float

    @property
    def value(self) -> float:
        """0 … 1."""
        return self.broken / self.of

    def below(self, share: float) -> float:
        """The chance of so few broken ones, if ``share`` of all were."""
        return beta_share(1 - share, max(self.of - self.broken, 1e-9), self.broken + 1)

    def above(self, share: float) -> float:
        """The chance of so many broken ones, if ``share`` of all were."""
        return beta_share(share, self.broken, self.of - self.broken + 1) if self.broken > 0 else 1.0

    @property
    def interval(self) -> Interval:
        """Of 95 %: at its ends so many, or so few, would be seen in one case of forty (Clopper and Pearson 1934)."""
        low = _where(lambda share: self.above(share) > _TAIL) if self.broken > 0 else 0.0
        high = _where(lambda share: self.below(share) <= _TAIL) if self.broken < self.of else 1.0
        return Interval(low, high)


def _where(is_beyond: Callable[[float], bool]) -> float:
    """The share from which on it is true."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_beyond(middle) else (middle, high)
    return (low + high) / 2


def share_of(broken: Sequence[int], of: Sequence[int], memory: float) -> Share | None:
    """Of a series, request by request; None where nothing was counted."""
    total = sum(of)
    return Share(sum(broken) / memory, total / memory) if total else None
