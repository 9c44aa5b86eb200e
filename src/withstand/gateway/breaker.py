"""Whether an engine is worth asking: pure, with the time passed in.

Three failures in a row, and it is left alone for a while; then one request tries it, and the others go on waiting
until that one has worked. Where no other engine is left, it is asked all the same: its own answer says more.

What it knows lies in cells that other workers may share: two that fail at once may count as one, which does no harm.
"""

from collections.abc import MutableSequence

FAILURES_MAX = 3
PAUSE_S = 5.0


class Breaker:
    """Closed while all is well. Of each sequence the first is used."""

    __slots__ = ("_failures", "_until_s")

    def __init__(
        self,
        failures: MutableSequence[int] | memoryview | None = None,
        until_s: "MutableSequence[float] | memoryview[float] | None" = None,
    ) -> None:
        self._failures = [0] if failures is None else failures
        self._until_s = [0.0] if until_s is None else until_s

    def is_open(self, now_s: float) -> bool:
        """Leave it alone."""
        return self._until_s[0] > now_s

    @property
    def is_tripped(self) -> bool:
        """It has failed so often that it is left alone, or tried by one request at a time."""
        return self._failures[0] >= FAILURES_MAX

    def began(self, now_s: float) -> None:
        """A request goes to it; where it is the one that tries, the others are held back for as long again."""
        if self._failures[0] >= FAILURES_MAX:
            self._until_s[0] = now_s + PAUSE_S

    def worked(self) -> bool:
        """It answered; whether it had been left alone before."""
        failures = self._failures[0]
        if failures or self._until_s[0]:
            self._failures[0], self._until_s[0] = 0, 0.0
        return failures >= FAILURES_MAX

    def failed(self, now_s: float) -> None:
        """It did not."""
        self._failures[0] += 1
        if self._failures[0] >= FAILURES_MAX:
            self._until_s[0] = now_s + PAUSE_S
