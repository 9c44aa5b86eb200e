"""By lot alone, and by the lot of two."""

import random
from collections.abc import Sequence

from withstand.gateway.asked import Asked
from withstand.gateway.engine import Seat
from withstand.gateway.policies.policy import Choose, Header


def drawn(seats: Sequence[Seat], now_s: float, dice: random.Random) -> Seat:
    """One of them, each as likely as its share."""
    shares = [seat.share(now_s) for seat in seats]
    left = dice.random() * sum(shares)
    for seat, share in zip(seats, shares, strict=True):
        left -= share
        if left < 0:
            return seat
    return seats[-1]


class Random:
    """Each as likely as its weight says."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def chooser(self, asked: Asked, header: Header) -> Choose:  # noqa: ARG002  whoever asks
        """The same for all."""
        return self.choose

    def choose(self, seats: Sequence[Seat], now_s: float) -> Seat:
        """One by lot."""
        return drawn(seats, now_s, self._dice)


class LeastInFlight:
    """Two by lot, and of them the one with less to do for its weight.

    The least of all would send a herd to whichever is least just now (Mitzenmacher, "The power of two choices", 2001).
    """

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def chooser(self, asked: Asked, header: Header) -> Choose:  # noqa: ARG002  whoever asks
        """The same for all."""
        return self.choose

    def choose(self, seats: Sequence[Seat], now_s: float) -> Seat:
        """One of the two."""
        if len(seats) == 1:
            return seats[0]
        first = drawn(seats, now_s, self._dice)
        second = drawn([seat for seat in seats if seat is not first], now_s, self._dice)
        return second if second.load(now_s) < first.load(now_s) else first
