"""Which of a model's engines gets a request: pure but for the dice and the turn that are passed in."""

import random
from collections.abc import Callable, Mapping, Sequence

from withstand.gateway.engine import Seat

Choose = Callable[[Sequence[Seat]], Seat]
"""Of one seat or more."""


class RoundRobin:
    """Each in its turn; a heavier one more often, and evenly spread (nginx's smooth weighted round robin)."""

    def __call__(self, seats: Sequence[Seat]) -> Seat:
        """The one whose turn it is."""
        for seat in seats:
            seat.credit += seat.weight
        chosen = max(seats, key=lambda seat: seat.credit)
        chosen.credit -= sum(seat.weight for seat in seats)
        return chosen


class LeastInFlight:
    """Two by lot, and of them the one with less to do for its weight.

    The least of all would send a herd to whichever is least just now (Mitzenmacher, "The power of two choices", 2001).
    """

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def __call__(self, seats: Sequence[Seat]) -> Seat:
        """One of the two."""
        if len(seats) == 1:
            return seats[0]
        first = self._drawn(seats)
        second = self._drawn([seat for seat in seats if seat is not first])
        return second if second.load < first.load else first

    def _drawn(self, seats: Sequence[Seat]) -> Seat:
        left = self._dice.random() * sum(seat.weight for seat in seats)
        for seat in seats:
            left -= seat.weight
            if left < 0:
                return seat
        return seats[-1]


POLICIES: Mapping[str, Callable[[random.Random], Choose]] = {
    "round_robin": lambda _: RoundRobin(),
    "least_inflight": LeastInFlight,
}
