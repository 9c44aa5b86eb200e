"""One connection: dialled, perhaps encrypted, then one exchange after another. Never blocks.

A read's stamp is taken (from the kernel where it gives one) before anything else is done with the bytes.
"""

import errno
import os
import socket
import ssl
from enum import Enum, auto
from typing import TYPE_CHECKING

from withstand import clock
from withstand.load.address import is_our_limit, why
from withstand.load.exchange import Exchange
from withstand.load.http import HttpError
from withstand.load.owner import Owner
from withstand.load.poller import READ, WRITE
from withstand.load.receiver import receiver
from withstand.load.shortway import ShortWay
from withstand.load.stamps import ANCILLARY_BYTES, ask_for_stamps
from withstand.load.sureness import Sureness
from withstand.load.tls import TlsPipe
from withstand.record import Status

if TYPE_CHECKING:
    from withstand.load._receive import Receiver

READ_BYTES = 16384
_NEWLINE = 10
"""A read that ends with it ends with an event, or with a line of framing behind one; else with part of the next."""
_IN_PROGRESS = frozenset({errno.EINPROGRESS, errno.EWOULDBLOCK})


class State(Enum):
    """What a connection is doing."""

    CONNECTING = auto()
    HANDSHAKING = auto()
    BUSY = auto()
    IDLE = auto()
    CLOSED = auto()


class Connection:
    """One socket of its owner's."""

    __slots__ = (
        "_asked_ns",
        "_full",
        "_left_over",
        "_outgoing",
        "_owner",
        "_pooled",
        "_receiver",
        "_recvmsg",
        "_short_way",
        "_socket",
        "_stamp_ns",
        "_sureness",
        "_tls",
        "_writing",
        "began_ns",
        "descriptor",
        "exchange",
        "moved_ns",
        "served",
        "state",
    )

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._stamp_ns = owner.stamps.stamp_ns
        self._socket: socket.socket
        self._tls: TlsPipe | None = None
        self._outgoing = memoryview(b"")
        self._writing = False
        self._pooled = self._full = self._left_over = False
        self._sureness = Sureness()
        self.served = 0
        self._short_way: ShortWay | None = None
        self._receiver: Receiver | None = None
        """Who calls ``take_long_way`` in place of ``on_event``."""
        self.descriptor = -1
        self.exchange: Exchange | None = None
        self.state = State.CONNECTING
        self.began_ns = self.moved_ns = self._asked_ns = 0

    # Dialling.

    def dial(self, exchange: Exchange | None) -> bool:
        """Open a connection, for this exchange or in reserve; False = the listener's queue is full, ask again soon."""
        located = self._owner.route.located
        self.exchange = exchange
        self.began_ns = self.moved_ns = clock.now_ns()
        try:
            self._socket = socket.socket(located.family, socket.SOCK_STREAM)
            number = self._prepare_and_connect()
        except OSError as e:
            self._failed_to_dial(e.errno or errno.EIO)
            return True
        if number == errno.EAGAIN and located.family == socket.AF_UNIX:
            self._socket.close()
            return False
        self.descriptor = self._socket.fileno()
        self._owner.opened(self)
        self._writing = True
        self._receiver = receiver(self.descriptor, self, self._owner.stamps)
        self._owner.loop.add(self.descriptor, READ | WRITE, self._receiver or self.on_event)
        if number and number not in _IN_PROGRESS:
            self._failed_to_dial(number)
        elif number == 0:
            self._connected()
        return True

    def _prepare_and_connect(self) -> int:
        self._socket.setblocking(False)
        if self._socket.family != socket.AF_UNIX:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ask_for_stamps(self._socket)
        self._recvmsg = self._socket.recvmsg
        return self._socket.connect_ex(self._owner.route.located.sockaddr)

    def _failed_to_dial(self, number: int) -> None:
        now_ns = clock.now_ns()
        if is_our_limit(number):
            self.abandon(Status.NOT_SENT, f"This client's limit: {os.strerror(number).lower()}", now_ns)
        else:
            status = Status.TIMEOUT if number == errno.ETIMEDOUT else Status.REFUSED
            self.abandon(status, f"No connection: {os.strerror(number).lower()}", now_ns)

    def _connected(self) -> None:
        route = self._owner.route
        if route.context is None:
            self._write_request()
            return
        self.state = State.HANDSHAKING
        self._tls = TlsPipe(route.context, route.address.host)
        self._go_on_with_handshake(b"")

    def _go_on_with_handshake(self, cipher: bytes) -> bytes:
        """Plain text that came behind the handshake, if any."""
        assert self._tls is not None
        try:
            plain, _ = self._tls.decrypt(cipher)
        except ssl.SSLError as e:
            reason = getattr(e, "verify_message", "") or e.reason or str(e)
            self.abandon(Status.TLS_ERROR, f"TLS: {reason}", clock.now_ns())
            return b""
        self._push(self._tls.outgoing())
        if self._tls.ready and self.state is State.HANDSHAKING:
            self._write_request()
        return plain

    # Sending.

    def begin(self, exchange: Exchange) -> None:
        """Send over this idle connection."""
        self._pooled = True
        self._sureness = Sureness()
        self.exchange = exchange
        self.began_ns = self.moved_ns = clock.now_ns()
        self._write_request()

    def _write_request(self) -> None:
        if self.exchange is None:
            self._watch(writing=False)
            self.state = State.IDLE
            self._owner.free(self)
            return
        self.state = State.BUSY
        self._asked_ns = clock.now_ns()
        self._owner.loop.hurry(self.descriptor)
        if self._tls:
            self._tls.encrypt(self.exchange.payload)
            self._push(self._tls.outgoing())
        else:
            self._push(self.exchange.payload)

    def _push(self, data: bytes) -> None:
        """Hand bytes to the kernel, and keep what it does not take."""
        if data:
            self._outgoing = memoryview(bytes(self._outgoing) + data) if self._outgoing else memoryview(data)
        self._flush()

    def _flush(self) -> None:
        try:
            while self._outgoing:
                # Before the call: on its way out of it we may be put aside for the server that it has just woken.
                self.moved_ns = clock.now_ns()
                sent = self._socket.send(self._outgoing)
                self._outgoing = self._outgoing[sent:]
        except BlockingIOError:
            self._watch(writing=True)
            return
        except OSError as e:
            self._lost(f"The connection broke while sending: {why(e)}")
            return
        self._watch(writing=False)
        exchange = self.exchange
        if self.state is State.BUSY and exchange is not None and exchange.sent_ns is None:
            exchange.sent_ns = self.moved_ns

    def _watch(self, *, writing: bool) -> None:
        if writing != self._writing:
            self._writing = writing
            self._owner.loop.change(self.descriptor, READ | WRITE if writing else READ)

    # Receiving.

    def on_event(self, events: int) -> None:
        """Something can be done: nearly always, bytes are there, and nearly always they are one token."""
        if events != READ:
            self.on_other_events(events)
            return
        try:
            data, ancillary, _, _ = self._recvmsg(READ_BYTES, ANCILLARY_BYTES)
        except BlockingIOError:
            return
        except OSError as e:
            self.broke(e.errno or errno.EIO)
            return
        read_ns = clock.now_ns()
        stamp_ns = self._stamp_ns(ancillary, read_ns)
        short_way = self._short_way
        if short_way is None or stamp_ns is None or not short_way.take(data, stamp_ns):
            self.take_long_way(data, stamp_ns, read_ns)

    def broke(self, number: int) -> None:
        """A read failed."""
        self._lost(f"The connection broke: {why(OSError(number, os.strerror(number)))}")

    def take_long_way(self, data: bytes, stamp_ns: int | None, read_ns: int) -> None:
        """A read that is to be read in full."""
        self.moved_ns = read_ns
        self._left_over, self._full = self._full, len(data) == READ_BYTES
        if not data:
            self._ended_by_server()
        elif self._tls is None:
            self._hand_over(data, stamp_ns, read_ns)
        else:
            self._take_cipher(data, stamp_ns, read_ns)

    def took_together(self, events: int, stamp_ns: int, read_ns: int) -> None:
        """A read of several chunks has been counted the short way: each had output, and nothing was left over."""
        exchange, owner = self.exchange, self._owner
        self._left_over, self._full = self._full, False
        owner.check.shared_reads += 1
        if exchange is not None and owner.loop.may_have_waited(stamp_ns, read_ns):
            exchange.reply.trailed = False
            self._sureness.read_late(exchange.reply, events, self._empty_ns, ended=not owner.check.cuts_chunks)

    def on_other_events(self, events: int) -> None:
        """Not only something to read."""
        if self.state is State.CONNECTING:
            if number := self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self._failed_to_dial(number)
            else:
                self._connected()
            return
        if events & WRITE:
            self._flush()
        if events & ~WRITE and self.state is not State.CLOSED:
            self.on_event(READ)

    def _take_cipher(self, cipher: bytes, stamp_ns: int | None, read_ns: int) -> None:
        if self.state is State.HANDSHAKING:
            data, closed = self._go_on_with_handshake(cipher), False
        else:
            data, closed = self._decrypted(cipher)
        if data and self.state is not State.CLOSED:
            self._hand_over(data, stamp_ns, read_ns)
        if closed and self.state is not State.CLOSED:
            self._ended_by_server()

    def _decrypted(self, cipher: bytes) -> tuple[bytes, bool]:
        assert self._tls is not None
        try:
            plain, closed = self._tls.decrypt(cipher)
        except ssl.SSLError as e:
            self._lost(f"TLS: {e.reason or e}")
            return b"", False
        if answer := self._tls.outgoing():
            self._push(answer)
        return plain, closed

    def _hand_over(self, data: bytes, stamp_ns: int | None, read_ns: int) -> None:
        exchange = self.exchange
        if exchange is None or self.state is not State.BUSY:
            self._close()
            return
        owner = self._owner
        if stamp_ns is None:
            exchange.kernel_stamped = False
            owner.loop.nap_ns = 0
            owner.check.blind.add(read_ns - owner.loop.looked_ns)
            stamp_ns = read_ns
        if stamp_ns < self._asked_ns and exchange.first_byte_ns is None:
            self._unanswered(exchange, Status.BAD_ANSWER, "The server answered before it was asked")
            return
        try:
            events = exchange.feed(data, stamp_ns)
        except HttpError as e:
            self.abandon(Status.BAD_ANSWER, f"Not HTTP: {e}", read_ns)
            return
        owner.check.shared_reads += events > 1
        cut = self._full or (self._tls is not None and not self._tls.whole)
        owner.check.cuts_chunks |= exchange.answer.in_chunk and not (cut or self._left_over)
        shared = cut or self._left_over or not exchange.alone or owner.check.cuts_chunks
        if events and shared and (self._left_over or owner.loop.may_have_waited(stamp_ns, read_ns)):
            ended = data[-1] == _NEWLINE and not cut and exchange.ends_here and not owner.check.cuts_chunks
            self._sureness.read_late(exchange.reply, events, self._empty_ns, ended=ended)
        if exchange.answer.complete:
            self._finish(exchange, read_ns)
        else:
            # Until its first token has come an answer must not wait for others: see Loop.
            if exchange.reply.chunk_ns and not self._writing:
                owner.loop.relax(self.descriptor)
            if self._tls is None:
                self._take_short_way(None if self._full or owner.check.cuts_chunks else exchange.short_way)

    def _take_short_way(self, way: ShortWay | None) -> None:
        """From the next read on."""
        self._short_way = way
        if self._receiver is not None:
            known = None if way is None else way.known
            if known is None:
                self._receiver.forget()
            else:
                self._receiver.follow(*known)

    @property
    def _empty_ns(self) -> int:
        """When the socket was last empty. What a full read has left over may have been there then."""
        return self.began_ns if self._left_over else self._owner.loop.since_ns

    # Ending.

    def _finish(self, exchange: Exchange, now_ns: int) -> None:
        """The answer is whole: back to the pool first, so that the next request can take this connection.

        Behind a full read there may be more, and the next answer would begin with it.
        """
        self.exchange = None
        self._take_short_way(None)
        self.served += 1
        if exchange.answer.keep_alive and not self._outgoing and not self._full:
            self.state = State.IDLE
            self._owner.free(self)
        else:
            self._close()
        exchange.complete(now_ns)

    def _ended_by_server(self) -> None:
        """End of stream: the proper end of an answer without a length, else a loss."""
        exchange = self.exchange
        if exchange is not None:
            self._sureness.connection_ended(exchange.reply, self.began_ns, chunked=bool(exchange.answer.chunks))
            if exchange.answer.closed():
                self._finish(exchange, clock.now_ns())
                return
        self._lost("The server closed the connection")

    def _lost(self, what: str) -> None:
        exchange = self.exchange
        if exchange is None:
            self._close()
        elif exchange.first_byte_ns is not None:
            self.abandon(Status.TRUNCATED, f"{what} in the middle of the answer", clock.now_ns())
        else:
            self._unanswered(exchange, Status.RESET, f"{what} before the answer began")

    def _unanswered(self, exchange: Exchange, status: Status, error: str) -> None:
        """Nothing of its answer was here: where the connection was a reused one it may be asked once more."""
        if self._pooled and not exchange.retries:
            self.exchange = None
            self._close()
            self._owner.retry(exchange)
        else:
            self.abandon(status, error, clock.now_ns())

    def abandon(self, status: Status, error: str, now_ns: int) -> None:
        """Close, and end the exchange with what is known of it."""
        exchange, self.exchange = self.exchange, None
        self._close()
        if exchange is not None:
            exchange.broken(status, error, now_ns)

    def _close(self) -> None:
        if self.state is State.CLOSED:
            return
        self.state = State.CLOSED
        if self.descriptor >= 0:
            self._owner.loop.retire(self._socket)
            self._owner.closed(self)
        elif getattr(self, "_socket", None) is not None:
            self._socket.close()
