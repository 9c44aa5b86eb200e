"""Hands a request to FastAPI through uvicorn's own protocol, and the connection back to the door afterwards.

The request is complete by then, so uvicorn is told it anew, as the only one on a connection of its own; behind that is
the door's.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from withstand.gateway.heads import end_to_end
from withstand.gateway.incoming import Incoming

if TYPE_CHECKING:
    from fastapi import FastAPI

    from withstand.gateway.door import Door


class Control:
    """Makes the exchanges of one application."""

    def __init__(self, app: "FastAPI") -> None:
        self._config = uvicorn.Config(
            app, http="httptools", ws="none", lifespan="off", log_config=None, access_log=False, server_header=False
        )
        self._config.load()
        self._state = ServerState()

    def exchange(self, door: "Door", incoming: Incoming) -> "ControlExchange":
        """For one request."""
        return ControlExchange(self._config, self._state, door, incoming)


class ControlExchange(HttpToolsProtocol):
    """One request on a borrowed connection."""

    def __init__(self, config: uvicorn.Config, state: ServerState, door: "Door", incoming: Incoming) -> None:
        super().__init__(config=config, server_state=state, app_state={})
        self._door = door
        self._incoming = incoming
        self._borrowed = _Borrowed(door.transport, door.write, self)
        self._over = False

    def start(self) -> None:
        """Answer."""
        self.connection_made(self._borrowed)
        self.data_received(retold(self._incoming))

    def abandon(self) -> None:
        """The client has left."""
        if not self._over:
            self._over = True
            self.connection_lost(None)

    def stop(self) -> None:
        """The gateway is about to end; it is not waited for."""
        self.abandon()

    def pause(self) -> None:
        """The client does not read."""
        self.pause_writing()

    def resume(self) -> None:
        """It does again."""
        self.resume_writing()

    def on_response_complete(self) -> None:
        """Uvicorn has written all of the answer."""
        super().on_response_complete()
        self.give_back(keep=self._incoming.head.keeps_alive)

    def give_back(self, *, keep: bool) -> None:
        """The connection is the door's again."""
        if not self._over:
            self.abandon()
            self._door.done(keep=keep)


class _Borrowed(asyncio.Transport):
    """The door's transport, which uvicorn may write to; to close it is to give it back for closing."""

    def __init__(self, transport: asyncio.Transport, write: Callable[[bytes], None], exchange: ControlExchange) -> None:
        super().__init__()
        self._transport = transport
        self._write = write
        self._exchange = exchange

    def write(self, data: Any) -> None:
        self._write(data)

    def close(self) -> None:
        self._exchange.give_back(keep=False)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """The body is here already."""

    def resume_reading(self) -> None:
        """Reading is the door's."""


def retold(incoming: Incoming) -> bytes:
    """The request as one that nobody could read in two ways."""
    head = incoming.head
    host = head.header(b"host") or b""
    close = b"" if head.keeps_alive else b"connection: close\r\n"
    version = head.version.encode("ascii")
    line = b"%b %b HTTP/%b\r\nhost: %b\r\n%b" % (head.method, head.target, version, host, close)
    body = incoming.body
    size = b"content-length: %d\r\n" % len(body) if body or head.method not in {b"GET", b"HEAD"} else b""
    return b"%b%b%b\r\n%b" % (line, end_to_end(head), size, body)
