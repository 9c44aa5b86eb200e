"""The null server's process: ``python -m withstand.load.null.server``.

One thread, one queue: all gaps are the same, so whatever is written next goes to the queue's end, and its head is what
is due. Each token is one write at its own time. It speaks only with our own client: who sends anything but a
request that names its number is hung up on. When its standard input ends, its host is gone: it stops.
"""

import contextlib
import gc
import os
import re
import signal
import socket
from array import array
from collections import deque

import msgspec

from withstand import clock
from withstand.load.limits import ensure_descriptors
from withstand.load.lines import say_line
from withstand.load.null.answers import script, whole
from withstand.load.null.talk import Account, Begin, Listening, Served, Tell
from withstand.load.poller import READ, Poller
from withstand.load.stamps import ANCILLARY_BYTES, StampClock, ask_for_stamps
from withstand.load.timer import Alarm

_STDIN, _STDOUT = 0, 1
_BACKLOG = 4096
_READ_BYTES = 65536
_WRITES_A_TURN = 32
_PAUSE_S = 1.0
_BLUNT_NS = 2_000_000
"""Where there is no alarm, polling sleeps whole milliseconds: stay awake for longer."""
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_NUMBER = re.compile(rb"calibration (\d+)")
_STREAMED = b'"stream":true'
_decode = msgspec.json.Decoder(Begin | Tell).decode


class _Peer:
    """A connection, and what it has said of its next request."""

    __slots__ = ("said", "socket")

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.said = b""

    def next_request(self) -> bytes | None:
        """The next one that is here in whole, head and body."""
        head, end, _ = self.said.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        size = len(head) + len(end) + (int(length[1]) if length else 0)
        if not end or len(self.said) < size:
            return None
        request, self.said = self.said[:size], self.said[size:]
        return request


class _Stream:
    """An answer on its way."""

    __slots__ = ("arrived_ns", "began_ns", "due_ns", "ended_ns", "number", "peer", "script")

    def __init__(self, peer: _Peer, number: int, arrived_ns: int, script: tuple[bytes, ...]) -> None:
        self.peer = peer
        self.number = number
        self.script = script
        self.arrived_ns = self.due_ns = arrived_ns
        self.began_ns = array("q")
        self.ended_ns = array("q")

    def served(self) -> Served:
        """What became of it."""
        return Served(self.number, self.arrived_ns, self.began_ns.tolist(), self.ended_ns.tolist())


class Server:
    """Listens on a free port of the loopback."""

    def __init__(self) -> None:
        self._stamps = StampClock()
        self._poller = Poller()
        self._alarm = Alarm.open()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
        self._listener.setblocking(False)
        ask_for_stamps(self._listener)
        for descriptor in (_STDIN, self._listener.fileno(), *([self._alarm.fd] if self._alarm else [])):
            self._poller.register(descriptor, READ)
        self._peers: dict[int, _Peer] = {}
        self._whole = (whole(),)
        self._line = b""
        self._over = False
        self._begin(Begin(gap_ns=10_000_000, tokens=2, near_ns=0))

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    def _begin(self, rule: Begin) -> None:
        self._rule = rule
        self._near_ns = rule.near_ns if self._alarm else max(rule.near_ns, _BLUNT_NS)
        self._script = script(rule.tokens)
        self._due: deque[_Stream] = deque()
        self._streams: list[_Stream] = []
        self._late_ns = array("q")
        self._idle_ns = 0
        self._began_ns = clock.now_ns()
        self._stamps.measure()

    def run(self) -> None:
        """Until the host is gone."""
        now_ns = clock.now_ns()
        while not self._over:
            now_ns = self._write_due(now_ns)
            ready = self._poller.wait(self._pause_s(now_ns))
            woke_ns = clock.now_ns()
            self._idle_ns += woke_ns - now_ns
            for descriptor, _ in ready:
                self._hear(descriptor)
            now_ns = clock.now_ns()

    def _pause_s(self, now_ns: int) -> float:
        if not self._due:
            return _PAUSE_S
        wake_ns = self._due[0].due_ns - self._near_ns
        if wake_ns <= now_ns:
            return 0.0
        if self._alarm:
            self._alarm.set(wake_ns)
            return _PAUSE_S
        return (wake_ns - now_ns) / 1e9

    # Writing.

    def _write_due(self, now_ns: int) -> int:
        """Some of the tokens that are due; the time after it."""
        due = self._due
        for _ in range(_WRITES_A_TURN):
            if not due or due[0].due_ns > now_ns:
                break
            now_ns = self._write(due.popleft(), now_ns)
        return now_ns

    def _write(self, stream: _Stream, now_ns: int) -> int:
        place = len(stream.began_ns)
        piece = stream.script[place]
        try:
            sent = stream.peer.socket.send(piece)
        except OSError:  # the client has hung up, or does not read what it has asked for
            sent = 0
        ended_ns = clock.now_ns()
        if sent < len(piece):
            self._hang_up(stream.peer)
            return ended_ns
        stream.began_ns.append(now_ns)
        stream.ended_ns.append(ended_ns)
        self._late_ns.append(now_ns - stream.due_ns)
        if place + 1 < len(stream.script):
            stream.due_ns += self._rule.gap_ns
            self._due.append(stream)
        return ended_ns

    # Hearing.

    def _hear(self, descriptor: int) -> None:
        if peer := self._peers.get(descriptor):
            self._read(peer)
        elif descriptor == self._listener.fileno():
            self._accept()
        elif self._alarm and descriptor == self._alarm.fd:
            self._alarm.clear()
        else:
            self._obey()

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                sock, _ = self._listener.accept()
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ask_for_stamps(sock)
                self._peers[sock.fileno()] = _Peer(sock)
                self._poller.register(sock.fileno(), READ)

    def _read(self, peer: _Peer) -> None:
        try:
            data, ancillary, _, _ = peer.socket.recvmsg(_READ_BYTES, ANCILLARY_BYTES)
        except BlockingIOError:  # the event was meant for a connection that had this number before
            return
        except OSError:  # reset: as good as closed
            data, ancillary = b"", []
        if not data:
            self._hang_up(peer)
            return
        read_ns = clock.now_ns()
        stamp_ns = self._stamps.stamp_ns(ancillary, read_ns)
        peer.said += data
        while request := peer.next_request():
            self._answer(peer, request, read_ns if stamp_ns is None else stamp_ns)

    def _answer(self, peer: _Peer, request: bytes, arrived_ns: int) -> None:
        number = _NUMBER.search(request)
        if not number:
            self._hang_up(peer)
            return
        streamed = _STREAMED in request
        stream = _Stream(peer, int(number[1]), arrived_ns, self._script if streamed else self._whole)
        self._streams.append(stream)
        if streamed:
            stream.due_ns += self._rule.gap_ns
            self._due.append(stream)
        else:
            self._write(stream, clock.now_ns())

    def _hang_up(self, peer: _Peer) -> None:
        descriptor = peer.socket.fileno()
        if self._peers.pop(descriptor, None):
            self._poller.unregister(descriptor)
            peer.socket.close()

    def _obey(self) -> None:
        data = os.read(_STDIN, _READ_BYTES)
        self._over = not data
        *lines, self._line = (self._line + data).split(b"\n")
        for command in map(_decode, lines):
            if isinstance(command, Begin):
                self._begin(command)
            else:
                say(self._account())

    def _account(self) -> Account:
        busy_ns = clock.now_ns() - self._began_ns - self._idle_ns
        late_ns = sorted(self._late_ns) or [0]
        return Account(
            served=tuple(stream.served() for stream in self._streams),
            busy_ns=busy_ns,
            late_p99_ns=late_ns[int(0.99 * (len(late_ns) - 1))],
            late_max_ns=late_ns[-1],
        )


def say(word: Listening | Account) -> None:
    """One line to the host."""
    say_line(_STDOUT, msgspec.json.encode(word))


def main() -> None:
    """Serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ensure_descriptors(None)
    server = Server()
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection would make tokens late, and nothing here makes cycles
    say(Listening(server.port))
    server.run()


if __name__ == "__main__":
    main()
