"""By lot alone, and by the lot of two."""

import random
from collections.abc import Sequence

from withstand.gateway.asked import Asked
from withstand.gateway.engine import Seat
from withstand.gateway.policies.policy import Choose, Header


class Random:
    """Each as likely as its weight says."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def chooser(self, asked: Asked, header: Header) -> Choose:  # noqa: ARG002  whoever asks
        """The same for all."""
        return self.choose

    def choose(self, seats: Sequence[Seat], now_s: float) -> Seat:
        """One by lot."""
        return self._dice.choices(seats, [seat.share(now_s) for seat in seats])[0]


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
        shares = [seat.share(now_s) for seat in seats]
        one = self._dice.choices(range(len(seats)), shares)[0]
        load = seats[one].engine.load(now_s) / shares[one]
        shares[one] = 0.0
        other = self._dice.choices(range(len(seats)), shares)[0]
        return seats[other] if seats[other].engine.load(now_s) / shares[other] < load else seats[one]
