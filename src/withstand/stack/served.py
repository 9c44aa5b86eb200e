"""A server of the user's own, for the length of a ``with`` block: ``[target.serve]``."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from withstand.errors import EngineError, SpecError
from withstand.processes import KEEPER_S, under_keeper
from withstand.spec import Serve
from withstand.stack.ports import listener_on
from withstand.stack.progress import Progress
from withstand.stack.service import Running, Service, running

_STARTING = "Starting the server"
_LOOK_S = 2.0


def check_served(base_url: str | None) -> tuple[str, int]:
    """Host and port at which the server will listen.

    Raises:
        SpecError: it cannot be waited for there.
    """
    at = urlsplit(base_url or "")
    if at.scheme != "http" or not at.hostname or at.port is None:
        raise SpecError("target.serve needs a target.base_url of the form http://HOST:PORT, where the server will be.")
    return at.hostname, at.port


@contextmanager
def served(serve: Serve, base_url: str | None, progress: Progress, log_file: Path) -> Iterator[Running]:
    """It answers inside the block; it and all that it has started is gone after, and when we die in whatever way.

    Raises:
        EngineError: somebody listens there already, or it does not come up.
    """
    host, port = check_served(base_url)
    if _is_taken(host, port):
        owner = listener_on(port) or "somebody"
        raise EngineError(f"Port {port} of {host} is taken by {owner}; target.serve starts its own server.")
    progress(_STARTING, 0, None)
    with running(_service(serve, f"http://{urlsplit(base_url or '').netloc}", log_file)) as server:
        progress(_STARTING, 1, 1)
        yield server


def _service(serve: Serve, root: str, log_file: Path) -> Service:
    return Service(
        name=f"The server {serve.argv[0]}",
        argv=under_keeper(serve.argv, serve.stop_s),
        env=serve.env,
        log_file=log_file,
        health_url=f"{root}{serve.ready}",
        ready_within_s=serve.ready_s,
        stop_s=serve.stop_s + KEEPER_S,
    )


def _is_taken(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_LOOK_S).close()
    except OSError:
        return False
    return True
