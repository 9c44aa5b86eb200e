"""The server's process: sockets on loopback, and an end that does not wait for whoever still listens."""

import contextlib
import errno
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from withstand.app.follow import follow
from withstand.errors import UsageError
from withstand.files import is_there
from withstand.ui.library import Library
from withstand.ui.site import Site

_HANDLERS_MAX = 512
_PATIENCE_S = 2
"""For answers that are on their way when Ctrl-C comes."""


def serve(folder: Path, port: int, ready: Callable[[str], None]) -> None:
    """Until Ctrl-C. ``ready`` is told the page's address.

    Raises:
        UsageError: the folder is none, or the port is taken.
    """
    if is_there(folder) and not folder.is_dir():
        raise UsageError(f"{folder} is no folder; name the one that holds the runs.")
    sockets = _listening(port)
    url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/"
    with tempfile.TemporaryDirectory(prefix="withstand-ui-") as made:
        site = Site(Library(folder), Path(made), follow)
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn passes it on when all is closed
            _Server(site.app(), site.stop, lambda: ready(url)).run(sockets)


def _listening(port: int) -> list[socket.socket]:
    """127.0.0.1, and ::1 where there is such a thing, on one port."""
    first = _bound(socket.AF_INET, "127.0.0.1", port)
    try:
        return [first, _bound(socket.AF_INET6, "::1", first.getsockname()[1])]
    except (OSError, UsageError):  # a machine without IPv6, or a port that is free on one of them only
        return [first]


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as e:
        listening.close()
        if e.errno == errno.EADDRINUSE:
            raise UsageError(f"Port {port} is taken; name another by --port, or 0 for any that is free.") from None
        if e.errno == errno.EACCES:
            raise UsageError(f"Port {port} is not for everybody; name one from 1024 on by --port.") from None
        raise
    return listening


class _Server(uvicorn.Server):
    """Says when it listens, and tells the site to end its streams when it is asked to stop."""

    def __init__(self, app: ASGIApp, stop: Callable[[], None], ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level="critical",
                access_log=False,
                server_header=False,
                ws="none",
                limit_concurrency=_HANDLERS_MAX,
                timeout_graceful_shutdown=_PATIENCE_S,
            )
        )
        self._stop = stop
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Then the page can be opened."""
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Streams never end by themselves."""
        self._stop()
        super().handle_exit(sig, frame)
