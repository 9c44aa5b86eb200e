"""The process, or the one that has workers: it listens, says so, and on SIGTERM lets what is under way end."""

import asyncio
import gc
import resource
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import uvloop

from withstand.errors import ClientLimitError, WithstandError
from withstand.gateway.address import is_local, split_listen
from withstand.gateway.config import Config
from withstand.gateway.control.app import control_app
from withstand.gateway.control.bridge import Control
from withstand.gateway.control.crew import Alone
from withstand.gateway.door import Door
from withstand.gateway.house import House
from withstand.gateway.workers.board import Board
from withstand.gateway.workers.foreman import Foreman, Station
from withstand.gateway.workers.mate import Mate

_BACKLOG = 4096
_DRAIN_LOOK_S = 0.02


def serve_forever(config: Config, ready: Callable[[str], None]) -> int:
    """Serve until SIGTERM or SIGINT; ``ready`` gets the base URL. The exit code.

    Raises:
        ClientLimitError: the address cannot be had.
        UsageError: an engine's key or the log cannot be had.
    """
    _raise_descriptors()
    if config.workers > 1:
        return _serve_with_workers(config, ready)
    _run(config, ready, None)
    return 0


def _serve_with_workers(config: Config, ready: Callable[[str], None]) -> int:
    """The address is ours from here on, so that no worker finds it taken, and every worker finds the same."""
    host, port = split_listen(config.listen)
    with _reserved(host, port) as sock, tempfile.TemporaryDirectory(prefix="withstand-") as folder:
        port = sock.getsockname()[1]
        told = msgspec.structs.replace(
            config, listen=f"[{host}]:{port}" if ":" in host else f"{host}:{port}", state=_state(config, Path(folder))
        )

        def work(station: Station) -> int:
            try:
                _run(told, lambda _: None, station)
            except WithstandError as e:
                sys.stderr.write(f"withstand: {e}\n")
                return e.exit_code
            return 0

        gc.collect()
        gc.freeze()
        return Foreman(config.workers, Board(config.workers), work).run(lambda: ready(_base_url(host, port)))


def _state(config: Config, folder: Path) -> str | None:
    """What each worker has counted must be seen by all, so it cannot be in memory alone."""
    return config.state if config.has_state or not config.counts_usage else str(folder / "usage.sqlite3")


def _reserved(host: str, port: int) -> socket.socket:
    """Bound, but it does not listen, so the system gives it no connections."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        if port:  # workers share the address among themselves, not with a stranger who would share it too
            with socket.socket(family, kind) as alone:
                alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                alone.bind(address)
        sock = socket.socket(family, kind)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(address)
    except OSError as e:
        raise _not_to_be_had(f"{host}:{port}", e) from None
    return sock


def _run(config: Config, ready: Callable[[str], None], station: Station | None) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config, ready, station))


async def _serve(config: Config, ready: Callable[[str], None], station: Station | None) -> None:
    loop = asyncio.get_running_loop()
    host, port = split_listen(config.listen)
    asked_to_end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_end.set)
    house = House(config, loop, local=is_local(host), board=None if station is None else station.board)
    mate = None
    if station is not None:
        mate = Mate(station.number, house, asked_to_end.set)
        await mate.join(station)
    control = Control(control_app(house, mate or Alone(house)))
    try:
        server = await loop.create_server(
            lambda: Door(house, control.exchange), host, port, backlog=_BACKLOG, reuse_port=station is not None
        )
    except OSError as e:
        raise _not_to_be_had(config.listen, e) from None
    gc.collect()
    gc.freeze()  # what lives as long as the process is not looked through again
    ready(_base_url(host, server.sockets[0].getsockname()[1]))
    if mate is not None:
        mate.ready()
    await asked_to_end.wait()
    asked_to_end.clear()
    server.close()
    await _drain(house, asked_to_end)
    house.close()


def _not_to_be_had(listen: str, e: OSError) -> ClientLimitError:
    return ClientLimitError(f"{listen} cannot be listened on: {e.strerror}. Choose another address.")


async def _drain(house: House, asked_again: asyncio.Event) -> None:
    """No new requests; those under way go on for a time, unless somebody asks again."""
    house.draining = True
    end_s = house.now_s() + house.config.drain_s
    while house.doors and house.now_s() < end_s and not asked_again.is_set():
        for door in tuple(house.doors):
            door.drain()
        await asyncio.sleep(_DRAIN_LOOK_S)
    for door in tuple(house.doors):
        door.stop()
    await asyncio.sleep(_DRAIN_LOOK_S)  # for the last words to go out


def _base_url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _raise_descriptors() -> None:
    """Every stream is two of them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
