"""A request of nobody's, now and then, so that the next one of somebody's finds its way still in the core's caches.

A request's own work takes 16 µs when the last one was 10 ms ago, and hundreds when it was 50 (decision 027): others
have had the caches meanwhile. Requests to language models come that seldom, and nearly all that a gateway adds to their
TTFT is this. So what one passes is gone through a hundred times a second while clients ask for anything: a client's
connection, a door, a link, and an engine's answer in two pieces. All of them are here, in a house of their own: no
engine hears of it, and nothing is counted, logged or limited.
"""

import asyncio
import errno
import math
import os
import socket
from contextlib import ExitStack
from hashlib import sha256
from typing import cast

from withstand.gateway.config import Config, config_of
from withstand.gateway.door import Door, Exchange
from withstand.gateway.house import House
from withstand.gateway.incoming import Incoming
from withstand.gateway.link import Link

EVERY_S = 0.01
QUIET_S = 60.0
"""After the last request of somebody's there are no more rehearsals."""
_LOOK_S = 0.25
"""How soon it is noticed that there are requests again."""
_HOST = "127.0.0.1"
_PAIR_S = 1.0
_KEY = "sk-rehearsal"
_BODY = b'{"model":"rehearsal","stream":true,"max_tokens":16,"messages":[{"role":"user","content":"Once more."}]}'
_REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: rehearsal\r\nAuthorization: Bearer %b\r\n" % _KEY.encode() + (
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
)
_EVENT = b'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Again"}}]}\n\n'
_PIECE = b"%x\r\n%b\r\n" % (len(_EVENT), _EVENT)
_BEGIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + _PIECE
_LAST = b"0\r\n\r\n"


class _Engine(asyncio.Protocol):
    """It says the same whatever it is asked."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport = cast("asyncio.Transport", None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:  # noqa: ARG002  it is always the request
        self._transport.write(_BEGIN)
        self._loop.call_soon(self._transport.write, _PIECE + _LAST)


class _Client(asyncio.Protocol):
    """It asks again when it has been answered."""

    def __init__(self) -> None:
        self.answers = 0
        self._waits = False
        self._transport = cast("asyncio.Transport", None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if data.endswith(_LAST):
            self.answers += 1
            self._waits = False

    def ask(self) -> None:
        """Not while an answer is on its way, nor where none will come any more."""
        if not self._waits:
            self._waits = True
            self._transport.write(_REQUEST)


class Rehearsal:
    """Of the gateway whose requests ``house`` has; ``begin`` it, and ``close`` it."""

    def __init__(self, house: House, *, quiet_s: float = QUIET_S) -> None:
        self._house = house
        self._loop = house.loop
        self._quiet_s = quiet_s
        self._client = _Client()
        self._own: House | None = None
        self._next: asyncio.TimerHandle | None = None
        self._noted = 0
        self._busy_s = -quiet_s

    @property
    def times(self) -> int:
        """How often it was gone through, to the end."""
        return self._client.answers

    async def begin(self) -> None:
        """Go through it from now on while there are requests.

        Raises:
            OSError: there are no connections to be had within this machine, or no descriptors for them.
        """
        loop = self._loop
        own = self._own = House(_config(self._house.config), loop, local=True)
        (engine,) = own.roster.engines.values()
        with ExitStack() as made:
            clients, doors = _pair(made)
            links, engines = _pair(made)
            if own.descriptors.scarce(engines.fileno()):
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            await loop.create_connection(lambda: self._client, sock=clients)
            await loop.connect_accepted_socket(lambda: Door(own, _elsewhere), doors)
            await loop.connect_accepted_socket(lambda: _Engine(loop), engines)
            _, link = await loop.create_connection(lambda: Link(engine), sock=links)
            made.pop_all()  # whoever has a connection closes it
        engine.keep(link, own.now_s())
        self._look()

    def _look(self) -> None:
        now_s = self._loop.time()
        if self._house.passages or self._house.noted != self._noted:
            self._noted, self._busy_s = self._house.noted, now_s
        is_quiet = now_s - self._busy_s >= self._quiet_s
        if not is_quiet:
            self._client.ask()
        self._next = self._loop.call_later(_LOOK_S if is_quiet else EVERY_S, self._look)

    def close(self) -> None:
        """No more of it."""
        if self._next is not None:
            self._next.cancel()
        own, self._own = self._own, None
        if own is None:
            return
        for door in tuple(own.doors):
            door.abort()
        for engine in own.roster.engines.values():
            engine.close_idle(math.inf)
        own.splicing.close()


def _config(of: Config) -> Config:
    """One engine, that nobody dials, and of what the real one asks of a request, what takes time."""
    return config_of(
        {
            "models": {"rehearsal": {"engines": [{"url": f"http://{_HOST}"}]}},
            "keys": {"rehearsal": {"sha256": sha256(_KEY.encode()).hexdigest()}} if of.keys else {},
            "usage": {"ask": of.counts_usage},
        }
    )


def _pair(made: ExitStack) -> tuple[socket.socket, socket.socket]:
    """A TCP connection's two ends: not a pair of Unix sockets, whose way through the kernel is another."""
    with socket.create_server((_HOST, 0), backlog=1) as server:
        near = made.enter_context(socket.create_connection(server.getsockname(), _PAIR_S))
        far = made.enter_context(server.accept()[0])
    if far.getpeername() != near.getsockname():
        raise ConnectionAbortedError(errno.ECONNABORTED, "a stranger came in between")
    for end in (near, far):
        end.setblocking(False)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return near, far


def _elsewhere(door: Door, incoming: Incoming) -> Exchange:
    """Nobody rehearses what the control plane does."""
    raise NotImplementedError
