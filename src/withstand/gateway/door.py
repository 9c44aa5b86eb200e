"""One client's connection: it reads requests, has them answered one after another, and knows when the client leaves.

It does not know who answers: a passage for an engine's routes, the control plane for all others.
"""

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from withstand import clock
from withstand.gateway import cors, refusals
from withstand.gateway.config import Limits
from withstand.gateway.incoming import Head, Incoming, request_id_of
from withstand.gateway.keys import Shown
from withstand.gateway.passage import Passage
from withstand.gateway.reader import Reader
from withstand.gateway.refusals import RETRY_AFTER_S, Refusal
from withstand.gateway.routes import Dialect

if TYPE_CHECKING:
    from withstand.gateway.house import House

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_CLOSE, _CLOSE_WAIT = 7, 8
"""States of a TCP connection: reset, and closed by its other side (Linux, tcp_states.h)."""
_LINGER_S = 2.0
"""For a client that still sends to read why it was turned away: closing at once would reset what was said."""


class Exchange(Protocol):
    """A request that is being answered; its last act is the door's ``done``."""

    def start(self) -> None:
        """Answer."""

    def abandon(self) -> None:
        """The client has left."""

    def stop(self) -> None:
        """The gateway is about to end."""

    def pause(self) -> None:
        """The client does not read."""

    def resume(self) -> None:
        """It does again."""


class Door(asyncio.Protocol):
    """``control`` makes the exchange for a request that is not for an engine."""

    def __init__(self, house: "House", control: "Callable[[Door, Incoming], Exchange]") -> None:
        self.write: Callable[[bytes], None] = _nowhere
        self.transport = cast("asyncio.Transport", None)
        self.shown = Shown()
        self._house = house
        self._control = control
        self._reader = Reader(house, self._go_on)
        self._answered: Incoming | None = None
        self._exchange: Exchange | None = None
        self._since_s = house.now_s()
        self._unread = False
        """The client does not read, and what was written for it is too much already."""
        self._left_bytes = 0
        self._deaf = False

    @property
    def _limits(self) -> Limits:
        """As they are now."""
        return self._house.config.limits

    @property
    def descriptor(self) -> int | None:
        """Where what is written goes at once; None while something is to go before it, or nothing goes any more."""
        if self.transport.is_closing() or self.transport.get_write_buffer_size():
            return None
        return int(self.transport.get_extra_info("socket").fileno())

    # asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=self._limits.buffer_bytes)
        self.write = self.transport.write
        self._house.doors.add(self)
        sock = self.transport.get_extra_info("socket")
        if sock is not None and self._house.descriptors.scarce(sock.fileno()):
            self._house.descriptors.missed()
            self.write(refusals.answer(refusals.overcrowded(RETRY_AFTER_S), Dialect.OPENAI, request_id_of(None)))
            self._deaf = True
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        reader = self._reader
        if self._deaf or reader.refusal is not None:
            return
        read_ns = clock.now_ns()
        if self._exchange is None and not self._unread:
            incoming = reader.recognized(data, read_ns)
            if incoming is not None:
                self._answer(incoming)
                return
        self._read(data, read_ns)

    def _read(self, data: bytes, read_ns: int) -> None:
        reader = self._reader
        begun = reader.coming
        reader.read(data, read_ns)
        if reader.coming is not begun:
            self._since_s = self._house.now_s()
        if reader.complete or reader.refusal is not None:
            self._next()

    def _go_on(self) -> None:
        """The client may send its body."""
        if self._exchange is None:
            self.write(_CONTINUE)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  however it left
        self._house.doors.discard(self)
        self._house.held_back.discard(self)
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.abandon()
        if self._answered is not None:
            self._house.let_go(self._answered)
        self._reader.close()

    def pause_writing(self) -> None:
        self._unread = True
        if self._exchange is not None:
            self._exchange.pause()

    def resume_writing(self) -> None:
        self._unread = False
        if self._exchange is not None:
            self._exchange.resume()
        elif self._reader.complete or self._reader.refusal is not None or self in self._house.held_back:
            self._house.loop.call_soon(self._next)

    # Requests in their turn.

    def _next(self) -> None:
        if self._deaf or self.transport.is_closing():
            return
        if self._exchange is not None or self._unread:
            self._hold_back()
        elif self._reader.complete:
            self._answer(self._reader.complete.popleft())
        elif self._reader.refusal is not None:
            self._turn_away(self._reader.refusal)
        else:
            self._house.held_back.discard(self)
            self.transport.resume_reading()

    def _answer(self, incoming: Incoming) -> None:
        self._answered = incoming
        if self._house.config.cors.origins and self._is_preflight(incoming.head):
            return
        route = incoming.head.route
        if route is None:
            self._exchange = self._control(self, incoming)
        else:
            self._exchange = Passage(self._house, self, incoming, route)
        self._exchange.start()

    def _is_preflight(self, head: Head) -> bool:
        """A browser asks for a page of its own, and was answered; or it gets what it wants with the answer to come."""
        told = self._house.config.cors
        allowed = cors.origin_of_page(told, head)
        answer = None if allowed is None else cors.preflight(told, head, allowed)
        if answer is None:
            self._let_read(allowed)
            return False
        self.write = self.transport.write
        self.write(answer)
        self.done(keep=head.keeps_alive)
        return True

    def _let_read(self, allowed: bytes | None) -> None:
        """The answer's head will say which origin's pages may read it, if any."""
        write = self.transport.write
        self.write = write if allowed is None else cors.writing(write, allowed)

    def done(self, *, keep: bool, cut: bool = False) -> None:
        """The exchange is over. ``cut``: only a reset tells the client that the answer is not whole."""
        reader, self._exchange = self._reader, None
        self.write = self.transport.write
        if self._answered is not None and self._answered.held:
            self._house.let_go(self._answered)
        self._since_s = self._house.now_s()
        if cut:
            self._reset()
        elif not keep or self._house.draining:
            self.transport.close()
        elif reader.complete or reader.refusal is not None or self in self._house.held_back:
            self._house.loop.call_soon(self._next)

    def _reset(self) -> None:
        """Where the end of the connection is the end of the answer, only this is no such end."""
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.transport.abort()

    def _hold_back(self) -> None:
        """A client that sends ahead, or does not read, waits, so that memory is bounded."""
        if self not in self._house.held_back:
            self._house.held_back.add(self)
            self.transport.pause_reading()

    def _turn_away(self, refusal: Refusal) -> None:
        """What was read cannot be answered by anybody, nor what may come after it."""
        self._deaf = True
        self._house.counts.unreadable += 1
        self._since_s = self._house.now_s()
        if self in self._house.held_back:
            self._house.held_back.discard(self)
            self.transport.resume_reading()  # what it still sends is passed over
        incoming = self._reader.coming or self._reader.refused or self._answered
        if incoming is not None and self._house.config.cors.origins:
            self._let_read(cors.origin_of_page(self._house.config.cors, incoming.head))
        self.write(refusals.answer(refusal, Dialect.OPENAI, request_id_of(None)))

    # For the house.

    def listen(self) -> None:
        """Whether a client that is not read just now has left; nothing else would tell."""
        if _has_left(self.transport.get_extra_info("socket")):
            self.transport.abort()

    def look(self, now_s: float) -> None:
        """Whether the client is late: with a request, with leaving, or with anything at all."""
        quiet_s = now_s - self._since_s
        if self._exchange is not None:
            return
        if self._unread or self.transport.is_closing():
            self._look_at_buffer(now_s)
        elif self._deaf:
            if quiet_s > _LINGER_S:
                self.transport.close()
        elif self._reader.coming is not None:
            if quiet_s > self._limits.request_s:
                message = f"The request was not complete within {self._limits.request_s:g} s."
                self._turn_away(refusals.bad_request(message, status=408, closes=True))
        elif quiet_s > self._limits.keep_alive_s:
            self.transport.close()

    def _look_at_buffer(self, now_s: float) -> None:
        """A client that does not fetch its answer is not waited for forever."""
        left_bytes = self.transport.get_write_buffer_size()
        if left_bytes != self._left_bytes:
            self._left_bytes, self._since_s = left_bytes, now_s
        elif now_s - self._since_s > self._limits.keep_alive_s:
            self.transport.abort()

    def abort(self) -> None:
        """The client does not take what it has asked for."""
        self.transport.abort()

    def drain(self) -> None:
        """Take no more requests."""
        if self._exchange is None and self._reader.coming is None:
            self.transport.close()

    def stop(self) -> None:
        """End now, and say so if an answer is under way."""
        if self._exchange is not None:
            self._exchange.stop()
        self.transport.close()


def _has_left(sock: socket.socket) -> bool:
    """The other side has said that it will send no more, or is gone; who half-closes counts as gone, as with nginx."""
    if not hasattr(socket, "TCP_INFO"):
        return False
    state = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return state in {_CLOSE, _CLOSE_WAIT}


def _nowhere(_: bytes) -> None:
    """Where an answer goes before there is a connection."""
