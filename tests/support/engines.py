"""Engines that behave as they are told, on real sockets; they keep what they were sent and when its sender left."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

PATIENCE_S = 10.0
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

EVENT = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
DONE = b"data: [DONE]\n\n"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def whole(body: bytes = b'{"ok":true}', status: bytes = b"200 OK", more: bytes = b"") -> bytes:
    head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\n%bcontent-length: %d\r\n\r\n"
    return head % (status, more, len(body)) + body


@dataclass
class Seen:
    """One request as it arrived."""

    head: bytes
    body: bytes
    connection: int
    left: threading.Event = field(default_factory=threading.Event)
    """Its sender has closed the connection while it was being answered."""

    def header(self, name: str) -> str | None:
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b": ")
            if key.lower() == name.encode():
                return value.decode("latin-1")
        return None

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Talk:
    """One connection, for a behaviour to use."""

    def __init__(self, engine: "Engine", sock: socket.socket, number: int) -> None:
        self.engine = engine
        self.sock = sock
        self.number = number
        self._rest = b""

    def hear(self) -> Seen | None:
        """The next request; None when there is none to come."""
        while b"\r\n\r\n" not in self._rest:
            if not self._more():
                return None
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        seen = Seen(head, b"", self.number)
        size = int(seen.header("content-length") or 0)
        while len(self._rest) < size:
            if not self._more():
                return None
        seen.body, self._rest = self._rest[:size], self._rest[size:]
        self.engine.seen.append(seen)
        return seen

    def _more(self) -> bool:
        with contextlib.suppress(OSError):
            data = self.sock.recv(1 << 16)
            self._rest += data
            return bool(data)
        return False

    def say(self, *pieces: bytes, gap_s: float = 0.0) -> None:
        for piece in pieces:
            self.sock.sendall(piece)
            time.sleep(gap_s)

    def wait_for_leave(self, seen: Seen) -> None:
        """Say nothing until the sender goes away."""
        if not self._more():
            seen.left.set()

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.sock.close()


Behave = Callable[[Talk, Seen], None]


class Engine:
    """``behave`` is called with each request; after it the next one is waited for, if the connection is still there."""

    def __init__(self, behave: Behave) -> None:
        self.behave = behave
        self.seen: list[Seen] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.name = f"127.0.0.1:{self.port}"
        self._socks: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            self._socks.append(sock)
            threading.Thread(target=self._talk, args=(Talk(self, sock, self.connections),), daemon=True).start()

    def _talk(self, talk: Talk) -> None:
        with contextlib.suppress(OSError), talk.sock:
            while (seen := talk.hear()) is not None:
                try:
                    self.behave(talk, seen)
                except OSError:
                    seen.left.set()
                    return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in self._socks:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


def answering(answer: bytes = whole(), after_s: float = 0.0) -> Behave:
    """The same answer to everybody."""

    def behave(talk: Talk, _: Seen) -> None:
        time.sleep(after_s)
        talk.say(answer)

    return behave


def silent(talk: Talk, seen: Seen) -> None:
    """No answer at all."""
    talk.wait_for_leave(seen)


def streaming(*pieces: bytes, gap_s: float = 0.0) -> Behave:
    """A head and then pieces, which must hold their own framing."""

    def behave(talk: Talk, _: Seen) -> None:
        talk.say(STREAM_HEAD, *pieces, gap_s=gap_s)

    return behave


def stuck(*pieces: bytes) -> Behave:
    """Some of an answer, and then nothing more."""

    def behave(talk: Talk, seen: Seen) -> None:
        talk.say(*pieces)
        talk.wait_for_leave(seen)

    return behave


def hanging_up(*pieces: bytes, reset: bool = False) -> Behave:
    """Some of an answer, and then the connection's end."""

    def behave(talk: Talk, _: Seen) -> None:
        talk.say(*pieces)
        if reset:
            time.sleep(0.1)  # what was said before a reset is to be read first
            talk.reset()
        else:
            talk.sock.shutdown(socket.SHUT_RDWR)

    return behave
