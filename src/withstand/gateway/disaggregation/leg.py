"""A request at one prefill engine, from the choice of the engine to its answer, which no client sees as it comes.

Its ``done`` is called once, unless it is cancelled; it stops by itself when it is late.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from withstand import clock
from withstand.gateway.chunks import joined
from withstand.gateway.disaggregation.bodies import Whole
from withstand.gateway.trouble import Trouble, why_of

if TYPE_CHECKING:
    from withstand.gateway.engine import Seat
    from withstand.gateway.house import House
    from withstand.gateway.link import Link

_ANSWER_BYTES_MAX = 16 << 20
_LAST_WORDS_S = 5.0
"""How long an answer may take that nobody waits for."""


class Patience(Struct, frozen=True):
    """How long it may take to connect, and altogether."""

    connect_s: float
    total_s: float


class Leg:
    """``failure`` None with a status = the engine has answered. Its load counts until the leg is over."""

    def __init__(self, house: "House", seat: "Seat", done: "Callable[[Leg], None]") -> None:
        self.seat = seat
        self.failure: Whole | None = None
        self.status = 0
        self.head = self.body = b""
        """The whole answer, without its framing."""
        self.stale = False
        """It went over a quiet connection that was closed just then: the engine is well, and has seen nothing of it."""
        self.gone = False
        """Nobody listens there, and the gateway starts it again."""
        self.sent_ns = self.ended_ns = 0
        self._house = house
        self._done: Callable[[Leg], None] = done
        self._over = False
        self._request = (b"", b"")
        self._patience = Patience(0.0, 0.0)
        self._parts: list[bytes] = []
        self._chunked = False
        self._trouble = Trouble("it does not prefill")
        self._size = 0
        self._link: Link | None = None
        self._dialing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, head: bytes, body: bytes, patience: Patience) -> None:
        """Send it."""
        self._request, self._patience = (head, body), patience
        engine = self.seat.engine
        engine.sends(self._house.now_s())
        link = engine.waiting_link()
        if link is not None:
            self._carry(link)
        else:
            self._dial()

    def cancel(self) -> None:
        """Nobody wants it any more: the engine hears it by the end of its connection."""
        self._done = _nobody
        self._close(None)

    def let_go(self) -> None:
        """What it was for has been done without its answer; the engine may finish, so that the connection lives."""
        self._done = _nobody
        self._late_in(_LAST_WORDS_S)

    def blame(self) -> None:
        """It is this engine that is late."""
        self.seat.engine.failed(self._house.now_s(), self._trouble)

    # There.

    def _dial(self) -> None:
        self._late_in(min(self._patience.connect_s, self._patience.total_s))
        self._dialing = self._house.loop.create_task(self._dialed())

    async def _dialed(self) -> None:
        try:
            link = await self.seat.engine.dial(self._house.loop)
        except (OSError, UnicodeError) as e:  # the second: a host that no name can be made of
            self._dialing = None
            if self._house.descriptors.lack(e):  # which says nothing about the engine
                self._close(Whole.NO_PREFILL)
            else:
                self._trouble = Trouble(why_of(e), unreachable=True)
                self.gone = self.seat.engine.seems_gone(self._house.now_s())
                self._fail(Whole.NO_PREFILL)
        else:
            self._dialing = None
            self._carry(link)

    def _carry(self, link: "Link") -> None:
        self._link = link
        link.carry(self, *self._request)
        self.sent_ns = clock.now_ns()
        self._late_in(self._patience.total_s)

    # Back: what the link says.

    def answered(self, link: "Link", head: bytes, read_ns: int) -> None:  # noqa: ARG002  a passage wants to know when
        """The answer's head is here, and maybe more of it."""
        self.status, self._chunked = link.head.status, link.head.chunked
        self.seat.engine.answered(self.status, self._house.now_s())
        self._keep(head)
        link.flow(self._keep, _nobody)

    def began(self, read_ns: int) -> None:
        """The first byte of the answer's body."""

    def splice(self, link: "Link") -> None:
        """No client gets the answer."""

    def _keep(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= _ANSWER_BYTES_MAX:
            self._parts.append(data)

    def finished(self, link: "Link") -> None:
        """The answer is complete."""
        self._link = None
        link.engine.take_back(link, self._house.now_s())
        if self._size <= _ANSWER_BYTES_MAX:
            raw = b"".join(self._parts)
            end = raw.index(b"\r\n\r\n") + 4
            self.head, self.body = raw[:end], joined(raw[end:]) if self._chunked else raw[end:]
            self._close(None if 200 <= self.status < 500 else Whole.STATUS)
        else:
            self._close(Whole.BROKE)

    def lost(self, link: "Link") -> None:
        """The connection broke before the answer was complete."""
        self._link = None
        if link.used and not link.touched:
            self.stale = True
            self._close(Whole.BROKE)
        else:
            self._fail(Whole.BROKE)

    def broke(self, link: "Link", what: str) -> None:  # noqa: ARG002  a passage tells its client
        """What came is no answer."""
        self._fail(Whole.BROKE)

    # Endings.

    def _late_in(self, within_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._house.loop.call_later(within_s, self._late)

    def _late(self) -> None:
        self._fail(Whole.TIMEOUT)

    def _fail(self, reason: Whole) -> None:
        self.blame()
        self._close(reason)

    def _close(self, reason: Whole | None) -> None:
        if self._over:
            return
        self._over = True
        self.failure, self.ended_ns = reason, clock.now_ns()
        self.seat.engine.rests()
        self._house.lobby.stir()
        if self._timer is not None:
            self._timer.cancel()
        if self._dialing is not None:
            self._dialing.cancel()
        if self._link is not None:
            self._link.abort()
            self._link = None
        self._request = (b"", b"")
        self._done(self)


def _nobody(_: object) -> None:
    """Who hears of what nobody waits for."""
