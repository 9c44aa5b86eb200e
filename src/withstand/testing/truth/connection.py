"""One client's connection: requests come in, one answer after another goes out, and it ends as the score says."""

import socket
import ssl
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from withstand import clock
from withstand.load.poller import WRITE
from withstand.testing.truth.arrival import ANCILLARY_BYTES, arrived_ns, ask_for_stamps
from withstand.testing.truth.clockwork import Clockwork
from withstand.testing.truth.incoming import HttpRequest, Incoming, NotHttpError
from withstand.testing.truth.outbox import BUSY, Outbox
from withstand.testing.truth.score import End, Score, Write
from withstand.testing.truth.served import Entry

READ_BYTES = 65536
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_NOT_HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Plays(Protocol):
    """One answer on its way. ``exhausted`` = it has no more; then ``conclude`` is called."""

    score: Score
    entry: Entry | None
    exhausted: bool

    def stop(self) -> None:
        """Nobody listens any more."""


class Connection:
    """Never blocks. ``answer`` gets each request and makes a player for it; ``left`` hears that a player is done."""

    def __init__(
        self,
        clockwork: Clockwork,
        sock: socket.socket,
        number: int,
        answer: "Callable[[Connection, HttpRequest], None]",
        left: Callable[[Any], None],
    ) -> None:
        self.number = number
        self.accepted_ns = clock.now_ns()
        self.requests = 0
        self.player: Plays | None = None
        self._clockwork = clockwork
        self._socket = sock
        self._answer = answer
        self._left = left
        self._incoming = Incoming()
        self._outbox = Outbox(sock)
        self._waiting: deque[HttpRequest] = deque()
        self._shaking = isinstance(sock, ssl.SSLSocket)
        self._stamped = not self._shaking and ask_for_stamps(sock)
        self._writing = False
        self._open = True
        clockwork.watch(sock.fileno(), self._on_event)

    # The socket.

    def _on_event(self, events: int) -> None:
        if self._shaking and not self._shake_hands():
            return
        if events & WRITE and self._open:
            self._drain()
        if events & ~WRITE and self._open:
            self._receive()

    def _shake_hands(self) -> bool:
        assert isinstance(self._socket, ssl.SSLSocket)
        try:
            self._socket.do_handshake()
        except BUSY:
            return False
        except OSError:
            self._gone()
            return False
        self._shaking = False
        return True

    def _receive(self) -> None:
        while self._open:
            try:
                data, received_ns = self._read()
            except BUSY:
                return
            except OSError:
                data, received_ns = b"", None
            if not data:
                self._ended_by_client()
                return
            self._take(data, clock.now_ns(), received_ns)

    def _read(self) -> tuple[bytes, int | None]:
        """(Bytes, when they arrived by the kernel)."""
        if not self._stamped:
            return self._socket.recv(READ_BYTES), None
        data, ancillary, _, _ = self._socket.recvmsg(READ_BYTES, ANCILLARY_BYTES)
        return data, arrived_ns(ancillary, clock.now_ns())

    def _take(self, data: bytes, now_ns: int, received_ns: int | None) -> None:
        try:
            self._waiting.extend(self._incoming.feed(data, now_ns, received_ns))
        except NotHttpError:
            self.put(Write(0, _NOT_HTTP), None)
            self._end(End.CLOSE)
            return
        if self._incoming.expects_continue and not self._waiting:
            self._incoming.expects_continue = False
            self.put(Write(0, _CONTINUE), None)
        if self._waiting:  # other clients' bytes that are here already are read, and stamped, before this is answered
            self._clockwork.at(now_ns, self._go_on)

    def put(self, write: Write, entry: Entry | None) -> None:
        """Send, or keep what the client does not take yet."""
        try:
            self._outbox.put(write, entry)
        except OSError:
            self._gone()
            return
        self._watch_writing()

    def _drain(self) -> None:
        try:
            self._outbox.drain()
        except OSError:
            self._gone()
            return
        self._watch_writing()
        if self.player is not None and self.player.exhausted:
            self.conclude()

    def _watch_writing(self) -> None:
        wanted = bool(self._outbox)
        if wanted != self._writing:
            self._writing = wanted
            self._clockwork.watch_writing(self._socket.fileno(), writing=wanted)

    # Requests and answers.

    def _go_on(self) -> None:
        if self._open and self.player is None and self._waiting:
            request = self._waiting.popleft()
            self.requests += 1
            self._answer(self, request)

    def conclude(self) -> None:
        """The player has no more; the answer is over when the kernel has all of it."""
        player = self.player
        if player is None or self._outbox:
            return
        self.player = None
        if player.entry is not None:
            player.entry.done_ns = clock.now_ns()
        self._left(player)
        self._end(player.score.end, player.score.idle_ms)

    def _end(self, end: End, idle_ms: float | None = None) -> None:
        if end is not End.KEEP:
            self._close(reset=end is End.RESET)
            return
        if idle_ms is not None:
            served = self.requests
            self._clockwork.at(clock.now_ns() + round(idle_ms * 1e6), lambda: self._close_if_idle(served))
        self._go_on()

    # Ending.

    def _close_if_idle(self, served: int) -> None:
        if self._open and self.player is None and self.requests == served:
            self._close(reset=False)

    def _ended_by_client(self) -> None:
        """A request that is still to be answered is taken up first, in its turn, so that the log has it."""
        if self._waiting and self.player is None:
            self._clockwork.at(clock.now_ns(), self._gone)
        else:
            self._gone()

    def _gone(self) -> None:
        """The client has left."""
        player, self.player = self.player, None
        if player is not None:
            player.stop()
            if player.entry is not None:
                player.entry.aborted_ns = clock.now_ns()
            self._left(player)
        self._close(reset=False)

    def _close(self, *, reset: bool) -> None:
        if not self._open:
            return
        self._open = False
        self._clockwork.unwatch(self._socket.fileno())
        self._incoming.close()
        self._waiting.clear()
        if reset:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        elif isinstance(self._socket, ssl.SSLSocket):
            self._say_goodbye(self._socket)
        self._socket.close()

    def _say_goodbye(self, sock: ssl.SSLSocket) -> None:
        """TLS tells an end from a cut: a body that ends with the connection is whole only after this."""
        try:
            sock.unwrap()
        except (OSError, ValueError):
            return  # the notice is out, and its answer is not waited for; or the client has left already
