"""The process: it listens, says so, and on SIGTERM lets what is under way come to its end."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn
from msgspec.structs import replace

from withstand.agent.app import agent_app
from withstand.agent.config import Config, split_listen
from withstand.agent.house import house_of
from withstand.errors import StorageError, UsageError, WithstandError
from withstand.files import why_closed


def serve_forever(config: Config, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; ``ready`` gets the base URL.

    Raises:
        WithstandError: the address, a key, a tool or the sessions' file cannot be had.
    """
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    asyncio.run(_check(config))
    with _listening(config.listen) as listener:
        host, port = listener.getsockname()[:2]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        app = agent_app(config, lambda: ready(url))
        settings = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="on",
            timeout_graceful_shutdown=max(1, round(config.drain_s)),
            server_header=False,
        )
        uvicorn.Server(settings).run(sockets=[listener])


def check_unchanged(config: Config) -> None:
    """Whether it could be served; a sessions' file that is not there yet is not made.

    Raises:
        WithstandError: as ``serve_forever``, but for the address.
    """
    _check_folder(config)
    if config.sessions.path and not Path(config.sessions.path).exists():
        config = replace(config, sessions=replace(config.sessions, path=None))
    asyncio.run(_check(config))


def _check_folder(config: Config) -> None:
    path = Path(config.sessions.path) if config.sessions.path else None
    if path and (why := why_closed(path)):
        raise UsageError(f"sessions.path: {path} {why}. Choose a folder that may be written.")
    if path and not path.exists() and not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"sessions.path: {path} cannot be made. Choose a folder that may be written.")


async def _check(config: Config) -> None:
    """Whether the house can be opened: an error in a server's startup would come out as a traceback."""
    _check_folder(config)
    try:
        async with house_of(config):
            pass
    except WithstandError:
        raise
    except Exception as e:  # noqa: BLE001  SQLite has errors of its own
        path = config.sessions.path
        raise StorageError(f"sessions.path: {path} cannot be opened: {e}. Choose a file that may be written.") from None


def _listening(listen: str) -> socket.socket:
    host, port = split_listen(listen)
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
    except OSError as e:
        raise UsageError(f"{listen} cannot be listened on: {e.strerror}. Choose another address.") from None
    return listener
