"""The process, or the one that has workers: it listens, says so, and on SIGTERM lets what is under way end."""

import asyncio
import contextlib
import gc
import resource
import signal
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from msgspec import Struct

from withstand import huge_pages
from withstand.errors import WithstandError
from withstand.gateway.address import is_local, not_to_be_had, split_listen
from withstand.gateway.config import Config
from withstand.gateway.control.app import control_app
from withstand.gateway.control.bridge import Control
from withstand.gateway.control.crew import Alone
from withstand.gateway.door import Door
from withstand.gateway.house import House
from withstand.gateway.rehearsal import Rehearsal
from withstand.gateway.reload import Reloader, Reread
from withstand.gateway.telling import is_hung_up, tell, tell_of_waiting
from withstand.gateway.trouble import why_of
from withstand.gateway.workers.board import Board
from withstand.gateway.workers.foreman import Foreman, Station
from withstand.gateway.workers.mate import Mate

_BACKLOG = 4096
_DRAIN_LOOK_S = 0.02
_DRAIN_QUIET_S = 0.5
"""An end that takes no longer is not worth a word."""


class Said(Struct, frozen=True):
    """What the process says to whoever has started it."""

    ready: Callable[[str], None]
    """Gets the base URL."""
    told: Callable[[str], None]
    """Gets a sentence, good or bad."""


def serve_forever(config: Config, said: Said, reread: Reread | None = None) -> int:
    """Serve until SIGTERM or SIGINT; SIGHUP has the file read again. The exit code.

    Raises:
        UsageError: the address cannot be had.
        UsageError: an engine's key or the log cannot be had.
    """
    _raise_descriptors()
    if config.workers > 1:
        return _serve_with_workers(config, said, reread)
    _run(config, said, reread, None)
    return 0


def _serve_with_workers(config: Config, said: Said, reread: Reread | None) -> int:
    """The address is ours from here on, so that no worker finds it taken, and every worker finds the same."""
    host, port = split_listen(config.listen)
    with _reserved(host, port) as sock, tempfile.TemporaryDirectory(prefix="withstand-") as folder:
        port = sock.getsockname()[1]

        def settled(told: Config) -> Config:
            """With what is settled for the process' life, where the file still says the same of it."""
            if told.listen != config.listen:
                return told
            listen = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            return msgspec.structs.replace(told, listen=listen, state=_state(told, Path(folder)))

        def work(station: Station) -> int:
            try:
                again = None if reread is None else lambda: settled(reread())
                _run(settled(config), msgspec.structs.replace(said, ready=lambda _: None), again, station)
            except WithstandError as e:
                tell(str(e))
                return e.exit_code
            return 0

        gc.collect()
        gc.freeze()
        return Foreman(config.workers, Board(config.workers), work).run(lambda: said.ready(_base_url(host, port)))


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
        raise not_to_be_had(f"{host}:{port}", e) from None
    return sock


def _run(config: Config, said: Said, reread: Reread | None, station: Station | None) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config, said, reread, station))


async def _serve(config: Config, said: Said, reread: Reread | None, station: Station | None) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_hear)
    host, port = split_listen(config.listen)
    asked_to_end, asked_to_reload = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_end.set)
    house = House(config, loop, local=is_local(host), board=None if station is None else station.board)

    def hang_up() -> None:
        """A terminal that is closed says so to the foreman too, who ends its workers."""
        if not is_hung_up():
            asked_to_reload.set()
        elif station is None and not house.draining:
            asked_to_end.set()

    loop.add_signal_handler(signal.SIGHUP, hang_up)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    mate = None
    if station is not None:
        mate = Mate(station.number, house, asked_to_end.set)
        await mate.join(station)
    house.begin()
    rehearsal = await _rehearse(house, said) if config.cache_warming else None
    crew = mate or Alone(house)
    reloader = Reloader(house, reread, crew, said.told)
    control = Control(control_app(house, crew, reloader))
    try:
        server = await loop.create_server(
            lambda: Door(house, control.exchange), host, port, backlog=_BACKLOG, reuse_port=station is not None
        )
    except OSError as e:
        raise not_to_be_had(config.listen, e) from None
    if config.busy_polling:
        _never_sleep(loop)
    reloading = loop.create_task(_reload_when_asked(reloader, asked_to_reload))
    gc.collect()
    gc.freeze()  # what lives as long as the process is not looked through again
    huge_pages.settle()
    base_url = _base_url(host, server.sockets[0].getsockname()[1])
    house.listen = base_url.partition("://")[2]
    said.ready(base_url)
    if mate is not None:
        mate.ready()
    await asked_to_end.wait()
    asked_to_end.clear()
    server.close()
    reloading.cancel()
    await _drain(house, asked_to_end, tell_of_waiting if mate is None else mate.waits)
    await house.close()
    if rehearsal is not None:
        rehearsal.close()


def _hear(loop: asyncio.AbstractEventLoop, told: dict[str, Any]) -> None:
    """A handshake that fails when nobody waits for it any more is nobody's fault."""
    if "future" not in told or not isinstance(told.get("exception"), OSError):
        loop.default_exception_handler(told)


async def _rehearse(house: House, said: Said) -> Rehearsal:
    """A gateway that cannot do so serves all the same."""
    rehearsal = Rehearsal(house)
    try:
        await rehearsal.begin()
    except OSError as e:
        rehearsal.close()
        said.told(f"The caches are not kept warm: {why_of(e).lower()}. What is served is the same.")
    return rehearsal


def _never_sleep(loop: asyncio.AbstractEventLoop) -> None:
    """There is always something to do next, so that it only asks the kernel what has come, and never waits."""
    loop.call_soon(_never_sleep, loop)


async def _reload_when_asked(reloader: Reloader, asked: asyncio.Event) -> None:
    while await asked.wait():
        asked.clear()
        with contextlib.suppress(WithstandError):  # it has been told
            await reloader.reload()


async def _drain(house: House, asked_again: asyncio.Event, waits: Callable[[int, float], None]) -> None:
    """No new requests; those under way go on for a time, unless somebody asks again."""
    house.draining = True
    end_s = house.now_s() + house.config.drain_s
    quiet = house.loop.call_later(_DRAIN_QUIET_S, _say_what_waits, house, end_s, waits)
    while house.doors and house.now_s() < end_s and not asked_again.is_set():
        for door in tuple(house.doors):
            door.drain()
        await asyncio.sleep(_DRAIN_LOOK_S)
    quiet.cancel()
    for door in tuple(house.doors):
        door.stop()
    await asyncio.sleep(_DRAIN_LOOK_S)  # for the last words to go out


def _say_what_waits(house: House, end_s: float, waits: Callable[[int, float], None]) -> None:
    if house.passages:
        waits(len(house.passages), round(end_s - house.now_s(), 1))


def _base_url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _raise_descriptors() -> None:
    """Every stream is two of them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
