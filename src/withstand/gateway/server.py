"""The process: it listens, says so, and on SIGTERM lets what is under way come to its end."""

import asyncio
import gc
import resource
import signal
from collections.abc import Callable

import uvloop

from withstand.errors import ClientLimitError
from withstand.gateway.address import is_local, split_listen
from withstand.gateway.config import Config
from withstand.gateway.control.app import control_app
from withstand.gateway.control.bridge import Control
from withstand.gateway.door import Door
from withstand.gateway.house import House

_BACKLOG = 4096
_DRAIN_LOOK_S = 0.02


def serve_forever(config: Config, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; ``ready`` gets the base URL.

    Raises:
        ClientLimitError: the address cannot be had.
        UsageError: an engine's key or the log cannot be had.
    """
    _raise_descriptors()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config, ready))


async def _serve(config: Config, ready: Callable[[str], None]) -> None:
    loop = asyncio.get_running_loop()
    host, port = split_listen(config.listen)
    house = House(config, loop, local=is_local(host))
    control = Control(control_app(house))
    try:
        server = await loop.create_server(lambda: Door(house, control.exchange), host, port, backlog=_BACKLOG)
    except OSError as e:
        raise ClientLimitError(
            f"{config.listen} cannot be listened on: {e.strerror}. Choose another address."
        ) from None
    asked_to_end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_end.set)
    gc.collect()
    gc.freeze()  # what lives as long as the process is not looked through again
    ready(_base_url(host, server.sockets[0].getsockname()[1]))
    await asked_to_end.wait()
    asked_to_end.clear()
    server.close()
    await _drain(house, asked_to_end)
    house.close()


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
