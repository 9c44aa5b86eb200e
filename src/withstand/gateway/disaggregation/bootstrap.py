"""SGLang's way: prefill and decode get the same request at once, and meet in a room that we draw by lot.

Neither can finish without the other, so that when one fails the other is cancelled and a new pair begins in a new room:
an engine may not survive a room that it knows already (sgl-project/sglang#40125).
"""

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from withstand.gateway.disaggregation import bodies
from withstand.gateway.disaggregation.leg import Leg
from withstand.gateway.disaggregation.split import Split

if TYPE_CHECKING:
    from withstand.gateway.engine import Seat

_ROOM_BITS = 63


class Bootstrap(Split):
    """Both legs at once."""

    _seat = cast("Seat", None)
    """Prefill's, whose bootstrap server is the meeting place."""
    _rooms: int | Sequence[int] = 0

    def start(self) -> None:
        """Both."""
        if self.whole is None:
            seat = self._choose()
            if seat is None:
                return
            body = self._passage.outgoing.body_for(seat)
            self._seat, self._rooms = seat, _rooms(bodies.rooms_needed(body))
            self._begin(seat, self._met(body))
        self._passage.reach()

    def decode_body(self, body: bytes) -> bytes:
        """The same as prefill's."""
        return self._met(body) if self.whole is None else bodies.without_handle(body)

    def _met(self, body: bytes) -> bytes:
        return bodies.with_rooms(body, self._seat.engine.origin.host, self._seat.bootstrap_port, self._rooms)

    def _prefilled(self, leg: Leg) -> None:
        """Its answer says nothing that decode's does not."""

    def _again(self) -> None:
        self._passage.start_over()


def _rooms(count: int | None) -> int | Sequence[int]:
    return secrets.randbits(_ROOM_BITS) if count is None else [secrets.randbits(_ROOM_BITS) for _ in range(count)]
