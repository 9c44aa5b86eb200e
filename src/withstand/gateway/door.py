"""One client's connection: it reads requests, has them answered one after another, and knows when the client leaves.

It does not know who answers: a passage for an engine's routes, the control plane for all others.
"""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

import httptools

from withstand import clock
from withstand.gateway import cors, refusals
from withstand.gateway.config import Limits
from withstand.gateway.heads import end_to_end
from withstand.gateway.incoming import Incoming, request_id
from withstand.gateway.keys import Shown
from withstand.gateway.passage import Passage
from withstand.gateway.refusals import Refusal
from withstand.gateway.routes import Dialect, route_of

if TYPE_CHECKING:
    from withstand.gateway.house import House

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_REQUEST_BYTES = 1024
"""What a request takes beside its body, about."""
_CLOSE, _CLOSE_WAIT = 7, 8
"""States of a TCP connection: reset, and closed by its other side (Linux, tcp_states.h)."""
_COME_BACK_S = 5
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
        self._parser = httptools.HttpRequestParser(self)
        self._current: Incoming | None = None
        self._waiting: deque[Incoming] = deque()
        self._answered: Incoming | None = None
        self._exchange: Exchange | None = None
        self._refusal: Refusal | None = None
        self._head_bytes = 0
        """Of the current head, in reads between that of its first byte and the present one."""
        self._in_head = False
        self._head_goes_on = False
        """The present read began within a head."""
        self._read_bytes = 0
        self._read_ns = 0
        self._since_s = house.now_s()
        self._unread = False
        """The client does not read, and what was written for it is too much already."""
        self._left_bytes = 0
        self._deaf = False

    @property
    def _limits(self) -> Limits:
        """As they are now."""
        return self._house.config.limits

    # asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=self._limits.buffer_bytes)
        self.write = self.transport.write
        self._house.doors.add(self)
        sock = self.transport.get_extra_info("socket")
        if sock is not None and self._house.descriptors.scarce(sock.fileno()):
            self._house.descriptors.missed()
            self.write(refusals.answer(refusals.overcrowded(_COME_BACK_S), Dialect.OPENAI, request_id(None)))
            self._deaf = True
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self._deaf or self._refusal is not None:
            return
        self._read_ns = clock.now_ns()
        self._read_bytes = len(data)
        self._head_goes_on = self._in_head
        self._feed(data)
        if self._head_goes_on and self._in_head:
            self._head_bytes += len(data)
            self._limit_head(self._head_bytes)
        if self._waiting or self._refusal is not None:
            self._next()

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as e:
            self._decline_upgrade(data[e.args[0] :])
        except httptools.HttpParserCallbackError as e:
            raise e.__context__ or e from None  # a fault of our own
        except httptools.HttpParserError as e:
            self._refusal = self._refusal or refusals.bad_request(f"This is not HTTP: {e}.", closes=True)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  however it left
        self._house.doors.discard(self)
        self._house.held_back.discard(self)
        del self._parser  # it holds this object, and both would wait for the collector
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.abandon()
        for incoming in (self._current, self._answered, *self._waiting):
            if incoming is not None:
                self._house.let_go(incoming)
        self._waiting.clear()

    def pause_writing(self) -> None:
        self._unread = True
        if self._exchange is not None:
            self._exchange.pause()

    def resume_writing(self) -> None:
        self._unread = False
        if self._exchange is not None:
            self._exchange.resume()
        elif self._has_more:
            self._house.loop.call_soon(self._next)

    # httptools.

    def on_message_begin(self) -> None:
        self._current = Incoming()
        self._in_head, self._head_bytes = True, 0
        self._since_s = self._house.now_s()

    def on_url(self, part: bytes) -> None:
        assert self._current is not None
        self._current.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        incoming = self._current
        if self._in_head and incoming is not None:  # what comes after the chunks says nothing to anybody
            incoming.add_header(name, value)

    def on_headers_complete(self) -> None:
        incoming = self._current
        assert incoming is not None
        self._in_head = False
        if self._head_goes_on or self._read_bytes > self._limits.head_bytes:
            self._limit_head(incoming.head_bytes)
        incoming.method = self._parser.get_method()
        incoming.version = self._parser.get_http_version()
        incoming.keeps_alive = self._parser.should_keep_alive()
        if incoming.header(b"transfer-encoding") is not None:
            self._refusal = self._refusal or _unacceptable(incoming)
        if not self._house.hold(incoming, _REQUEST_BYTES):
            self._refusal = self._refusal or refusals.overcrowded(_COME_BACK_S)
        if incoming.header(b"expect") is not None and not (self._refusal or self._exchange or self._waiting):
            self.write(_CONTINUE)

    def on_body(self, part: bytes) -> None:
        incoming = self._current
        assert incoming is not None
        incoming.size += len(part)
        if incoming.size > self._limits.body_bytes:
            message = f"The body has more than {self._limits.body_bytes} bytes."
            self._refusal = self._refusal or refusals.bad_request(message, status=413, closes=True)
        if self._refusal is None:
            incoming.parts.append(part)
            if not self._house.hold(incoming, len(part)):
                self._refusal = refusals.overcrowded(_COME_BACK_S)
        else:
            self._house.let_go(incoming)

    def on_message_complete(self) -> None:
        incoming = self._current
        if incoming is not None and not self._parser.should_upgrade():
            incoming.read_ns = self._read_ns
            if self._refusal is None:
                self._waiting.append(incoming)
            else:
                self._house.let_go(incoming)
                self._answered = incoming
            self._current = None

    def _limit_head(self, size: int) -> None:
        if size > self._limits.head_bytes:
            message = f"The request's head has more than {self._limits.head_bytes} bytes."
            self._refusal = self._refusal or refusals.bad_request(message, status=431, closes=True)

    def _decline_upgrade(self, rest: bytes) -> None:
        """Some clients offer HTTP/2 with their first request; the parser then leaves the body to whoever accepts."""
        incoming, self._current = self._current, None
        if incoming is None or incoming.method == b"CONNECT":
            self._refusal = refusals.bad_request("This is no proxy for other hosts.", status=405, closes=True)
            return
        self._parser = httptools.HttpRequestParser(self)
        self._feed(plain_head(incoming) + rest)

    # Requests in their turn.

    def _next(self) -> None:
        if self._deaf or self.transport.is_closing():
            return
        if self._exchange is not None or self._unread:
            self._hold_back()
        elif self._waiting:
            self._answer(self._waiting.popleft())
        elif self._refusal is not None:
            self._turn_away(self._refusal)
        else:
            self._house.held_back.discard(self)
            self.transport.resume_reading()

    @property
    def _has_more(self) -> bool:
        """Something is left to be done for the client, or to be heard from it."""
        return bool(self._waiting) or self._refusal is not None or self in self._house.held_back

    def _answer(self, incoming: Incoming) -> None:
        self._answered = incoming
        if self._house.config.cors.origins and self._is_preflight(incoming):
            return
        route = route_of(incoming.method, incoming.target)
        if route is None:
            self._exchange = self._control(self, incoming)
        else:
            self._exchange = Passage(self._house, self, incoming, route)
        self._exchange.start()

    def _is_preflight(self, incoming: Incoming) -> bool:
        """A browser asks for a page of its own, and was answered; or it gets what it wants with the answer to come."""
        told = self._house.config.cors
        allowed = cors.origin_of_page(told, incoming)
        answer = None if allowed is None else cors.preflight(told, incoming, allowed)
        if answer is None:
            self._let_read(allowed)
            return False
        self.write = self.transport.write
        self.write(answer)
        self.done(keep=incoming.keeps_alive)
        return True

    def _let_read(self, allowed: bytes | None) -> None:
        """The answer's head will say which origin's pages may read it, if any."""
        write = self.transport.write
        self.write = write if allowed is None else cors.writing(write, allowed)

    def done(self, *, keep: bool, cut: bool = False) -> None:
        """The exchange is over. ``cut``: only a reset tells the client that the answer is not whole."""
        self._exchange = None
        self.write = self.transport.write
        if self._answered is not None and self._answered.held:
            self._house.let_go(self._answered)
        self._since_s = self._house.now_s()
        if cut:
            self._reset()
        elif not keep or self._house.draining:
            self.transport.close()
        elif self._has_more:
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
        incoming = self._current or self._answered
        if incoming is not None and self._house.config.cors.origins:
            self._let_read(cors.origin_of_page(self._house.config.cors, incoming))
        self.write(refusals.answer(refusal, Dialect.OPENAI, request_id(None)))

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
        elif self._current is not None:
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
        if self._exchange is None and self._current is None:
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


def _unacceptable(incoming: Incoming) -> Refusal | None:
    coding = incoming.header(b"transfer-encoding")
    if coding is not None and coding.strip().lower() != b"chunked":
        return refusals.bad_request("Of all transfer codings only chunked is understood.", status=501, closes=True)
    return None


def plain_head(incoming: Incoming) -> bytes:
    """The head without what belongs to the connection, but for the body's length."""
    framing = b"".join(
        b"%b: %b\r\n" % (name, value)
        for key, name, value in incoming.headers
        if key in {b"content-length", b"transfer-encoding", b"host", b"expect", b"x-request-id"}
    )
    line = b"%b %b HTTP/%b\r\n" % (incoming.method, incoming.target, incoming.version.encode("ascii"))
    return b"%b%b%b\r\n" % (line, framing, end_to_end(incoming))


def _nowhere(_: bytes) -> None:
    """Where an answer goes before there is a connection."""
