"""How long a command that fails is left alone: pure, with the time passed in."""

_FIRST_S = 1.0
_LONGEST_S = 60.0
_PROVED_S = 10.0
"""What was up for so long may be started again at once."""


class Backoff:
    """Twice as long after each failure in a row."""

    __slots__ = ("_failures", "_until_s")

    def __init__(self) -> None:
        self._failures = 0
        self._until_s = 0.0

    def left_s(self, now_s: float) -> float:
        """Until it may be tried again; 0 = now."""
        return max(0.0, self._until_s - now_s)

    def failed(self, now_s: float) -> None:
        """It did not start."""
        self._failures += 1
        self._pause(self._failures - 1, now_s)

    def crashed(self, up_s: float, now_s: float) -> None:
        """It ended by itself after it had been up for so long."""
        if up_s >= _PROVED_S:
            self.ended()
        self._failures += 1
        if self._failures > 1:  # once is started again at once
            self._pause(self._failures - 2, now_s)

    def _pause(self, doublings: int, now_s: float) -> None:
        self._until_s = now_s + min(_LONGEST_S, _FIRST_S * 2 ** min(doublings, 10))

    def ended(self) -> None:
        """It worked, and was stopped."""
        self._failures, self._until_s = 0, 0.0
