"""How much came in the last 60 s: pure, with the time passed in.

Amounts are kept in slots of a second, and the present slot and the 60 before it are counted. Any 60 s that end now lie
within these 61, so what is admitted while the sum stays below a limit never exceeds it in any window; a token bucket
lets twice the limit through. The price is that an amount may count for up to a second longer than it must.
"""

from collections import deque

WINDOW_S = 60


class Window:
    """Knows no limit: that may change while amounts stay. At most 61 slots, whatever comes."""

    __slots__ = ("_slots", "total")

    def __init__(self) -> None:
        self._slots: deque[list[int]] = deque()
        """[second, amount], oldest first."""
        self.total = 0

    def forget(self, now_s: float) -> None:
        """Drop what is too old."""
        oldest = int(now_s) - WINDOW_S
        while self._slots and self._slots[0][0] < oldest:
            self.total -= self._slots.popleft()[1]

    def add(self, amount: int, now_s: float) -> None:
        """It came now."""
        if not amount:
            return
        self.forget(now_s)
        second = int(now_s)
        if not self._slots or self._slots[-1][0] < second:
            self._slots.append([second, 0])
        self._slots[-1][1] += amount
        self.total += amount

    def take_back(self, amount: int, added_s: float) -> None:
        """So much of what was added then was not used."""
        second = int(added_s)
        if self._slots and self._slots[-1][0] == second:
            self._slots[-1][1] -= amount
            self.total -= amount
            return
        for slot in self._slots:
            if slot[0] == second:
                slot[1] -= amount
                self.total -= amount

    def wait_s(self, amount: int, limit: int, now_s: float, others: int = 0) -> float:
        """How long until ``amount`` ≤ ``limit`` fits, if nothing else comes; 0 = it does now.

        ``others`` is in windows elsewhere; when it leaves those is not known, so where it must, a second is a guess.
        """
        self.forget(now_s)
        over = self.total + others + amount - limit
        if over <= 0:
            return 0.0
        for second, held in self._slots:
            over -= held
            if over <= 0:
                return second + WINDOW_S + 1 - now_s
        assert over <= others, "an amount above the limit never fits"
        return 1.0

    def empty_in_s(self, now_s: float) -> float:
        """When nothing of what came counts any more."""
        self.forget(now_s)
        return self._slots[-1][0] + WINDOW_S + 1 - now_s if self.total else 0.0
