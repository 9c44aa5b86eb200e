"""The process: it listens, says so, and on SIGTERM lets what is under way come to its end."""

import asyncio
import gc
import resource
import signal
from collections.abc import Callable

import uvloop
from msgspec import Struct

from withstand.errors import ClientLimitError, WithstandError
from withstand.gateway.address import is_local, split_listen
from withstand.gateway.config import Config
from withstand.gateway.control.app import control_app
from withstand.gateway.control.bridge import Control
from withstand.gateway.door import Door
from withstand.gateway.house import House
from withstand.gateway.reload import Reloader, Reread

_BACKLOG = 4096
_DRAIN_LOOK_S = 0.02


class Said(Struct, frozen=True):
    """What the process says to whoever has started it."""

    ready: Callable[[str], None]
    """Gets the base URL."""
    wrong: Callable[[str], None]
    """Gets a sentence."""


def serve_forever(config: Config, said: Said, reread: Reread | None = None) -> None:
    """Serve until SIGTERM or SIGINT; SIGHUP has the file read again.

    Raises:
        ClientLimitError: the address cannot be had.
        UsageError: an engine's key or the log cannot be had.
    """
    _raise_descriptors()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config, said, reread))


async def _serve(config: Config, said: Said, reread: Reread | None) -> None:
    loop = asyncio.get_running_loop()
    host, port = split_listen(config.listen)
    house = House(config, loop, local=is_local(host))
    reloader = Reloader(house, reread)
    control = Control(control_app(house, reloader))
    try:
        server = await loop.create_server(lambda: Door(house, control.exchange), host, port, backlog=_BACKLOG)
    except OSError as e:
        raise ClientLimitError(
            f"{config.listen} cannot be listened on: {e.strerror}. Choose another address."
        ) from None
    asked_to_end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_end.set)
    asked_to_reload = asyncio.Event()
    loop.add_signal_handler(signal.SIGHUP, asked_to_reload.set)
    reloading = loop.create_task(_reload_when_asked(reloader, asked_to_reload, said))
    gc.collect()
    gc.freeze()  # what lives as long as the process is not looked through again
    said.ready(_base_url(host, server.sockets[0].getsockname()[1]))
    await asked_to_end.wait()
    asked_to_end.clear()
    server.close()
    reloading.cancel()
    await _drain(house, asked_to_end)
    await house.close()


async def _reload_when_asked(reloader: Reloader, asked: asyncio.Event, said: Said) -> None:
    while await asked.wait():
        asked.clear()
        try:
            await reloader.reload()
        except WithstandError as e:
            said.wrong(f"The configuration stays as it was. {e}")


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
