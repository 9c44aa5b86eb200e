"""Each in its turn, whatever they have to do."""

from collections.abc import Sequence

from withstand.gateway.asked import Asked
from withstand.gateway.engine import Seat
from withstand.gateway.policies.policy import Choose, Header


class RoundRobin:
    """A heavier one more often, and evenly spread (nginx's smooth weighted round robin)."""

    def chooser(self, asked: Asked, header: Header) -> Choose:  # noqa: ARG002  whoever asks
        """The same for all."""
        return self.choose

    def choose(self, seats: Sequence[Seat], now_s: float) -> Seat:
        """The one whose turn it is."""
        if len(seats) == 1:
            return seats[0]
        shares = [seat.share(now_s) for seat in seats]
        for seat, share in zip(seats, shares, strict=True):
            seat.credit += share
        chosen = max(seats, key=lambda seat: seat.credit)
        chosen.credit -= sum(shares)
        return chosen
