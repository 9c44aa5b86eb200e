"""Where clients are taken up: the socket that listens, and a ``Connection`` for each who calls."""

import socket
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from withstand.errors import UsageError
from withstand.testing.truth.arrival import ask_for_stamps
from withstand.testing.truth.clockwork import Clockwork
from withstand.testing.truth.config import Config
from withstand.testing.truth.connection import Connection
from withstand.testing.truth.incoming import HttpRequest

_BACKLOG = 4096


class Listener:
    """``answer`` gets each request and makes a player for it; ``left`` hears that a player is done."""

    def __init__(
        self,
        config: Config,
        clockwork: Clockwork,
        answer: Callable[[Connection, HttpRequest], None],
        left: Callable[[Any], None],
    ) -> None:
        self._config = config
        self._clockwork = clockwork
        self._context = config.tls_context()
        self._answer = answer
        self._left = left
        self._numbers = count()
        self._socket = listen(config)
        clockwork.watch(self._socket.fileno(), self._accept)

    @property
    def base_url(self) -> str:
        """Where a client finds it."""
        return self._config.base_url(0 if self._config.unix_path else self._socket.getsockname()[1])

    def close(self) -> None:
        """Take no more connections."""
        self._clockwork.unwatch(self._socket.fileno())
        self._socket.close()
        if self._config.unix_path:
            Path(self._config.unix_path).unlink()

    def _accept(self, _: int) -> None:
        while True:
            try:
                sock, _address = self._socket.accept()
            except OSError:
                return  # none is left, or it went away again; out of descriptors, it is asked again
            self._admit(sock)

    def _admit(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is not None:
            try:
                sock = self._context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
            except OSError:
                return  # it went away again
        Connection(self._clockwork, sock, next(self._numbers), self._answer, self._left)


def listen(config: Config) -> socket.socket:
    """The listening socket.

    Raises:
        UsageError: the address cannot be had.
    """
    family, address, name = _address(config)
    if config.unix_path is not None:
        _remove_stale(Path(config.unix_path))
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        ask_for_stamps(listener)  # the kernel begins to stamp a moment after the first asks
    except OSError as e:
        listener.close()
        why = (e.strerror or str(e)).lower()
        raise UsageError(f"{name} cannot be listened on ({why}); choose another, or port 0.") from None
    listener.setblocking(False)
    return listener


def _remove_stale(path: Path) -> None:
    """A server that was killed has left its socket, on which nobody listens; whatever else is there stays."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.setblocking(False)
        try:
            caller.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        except OSError:
            return  # the listener will say what is wrong with it


def _address(config: Config) -> tuple[int, str | tuple[str, int], str]:
    """(Family, address, what an error calls it)."""
    if config.unix_path is not None:
        return socket.AF_UNIX, config.unix_path, f"unix_path: {config.unix_path}"
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    return family, (config.host, config.port), f"host, port: {config.host}:{config.port}"
