"""Engines are asked for what they have to do, beside the way of the tokens: nobody waits for an answer.

One task an engine. An answer that does not come within the time that it would be believed for is given up; an engine
that says nothing useful counts as one that is not asked.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import httptools

from withstand.gateway.config import Poll
from withstand.gateway.engine import Engine
from withstand.gateway.load import SAID_S_MAX
from withstand.wire.engine_metrics import read_load

if TYPE_CHECKING:
    from withstand.gateway.house import House

_ANSWER_BYTES_MAX = 4 << 20
_NO_ANSWER = (OSError, ValueError, httptools.HttpParserError, httptools.HttpParserUpgrade)


class Polling:
    """``look`` now and then: engines come and go."""

    def __init__(self, house: "House") -> None:
        self._house = house
        self._tasks: dict[tuple[Engine, Poll], asyncio.Task[None]] = {}

    def look(self) -> None:
        """See to it that each engine that is to be asked is asked, and no other."""
        wanted = {(engine, engine.poll) for engine in self._house.roster.engines.values() if engine.poll is not None}
        for gone in self._tasks.keys() - wanted:
            self._tasks.pop(gone).cancel()
        for engine, poll in wanted - self._tasks.keys():
            self._tasks[engine, poll] = self._house.loop.create_task(self._go_on(engine, poll))

    def close(self) -> None:
        """Ask nobody any more."""
        for task in self._tasks.values():
            task.cancel()

    async def _go_on(self, engine: Engine, poll: Poll) -> None:
        while True:
            begun_s = self._house.now_s()
            with suppress(*_NO_ANSWER):
                async with asyncio.timeout(SAID_S_MAX):
                    await self._ask(engine, poll.path, begun_s)
            await asyncio.sleep(max(0.0, begun_s + poll.every_s - self._house.now_s()))

    async def _ask(self, engine: Engine, path: str, asked_s: float) -> None:
        before = engine.in_flight
        load = read_load(await _page(engine, path))
        if load is not None:
            engine.unseen.said(load, max(before, engine.in_flight), asked_s)


class _Page:
    """What httptools makes of an answer."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.complete = False

    def on_body(self, part: bytes) -> None:
        self.parts.append(part)

    def on_message_complete(self) -> None:
        self.complete = True


async def _page(engine: Engine, path: str) -> bytes:
    """The body of an answer 200.

    Raises:
        OSError, httptools.HttpParserError: there is no answer.
        ValueError: another status, or too much.
    """
    reader, writer = await asyncio.open_connection(engine.origin.host, engine.origin.port, ssl=engine.context)
    try:
        writer.write(question(engine, path))
        return await _read(reader)
    finally:
        writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> bytes:
    page = _Page()
    parser = httptools.HttpResponseParser(page)
    left = _ANSWER_BYTES_MAX
    while not page.complete and (data := await reader.read(1 << 16)):
        parser.feed_data(data)
        left -= len(data)
        if left < 0:
            raise ValueError("The page of metrics has no end.")
    if parser.get_status_code() != 200:
        raise ValueError("There are no metrics.")
    return b"".join(page.parts)


def question(engine: Engine, path: str) -> bytes:
    """A GET on a connection of its own."""
    key = b"" if engine.credentials is None else b"authorization: Bearer %b\r\n" % engine.credentials
    line = b"GET %b%b HTTP/1.1\r\nhost: %b\r\n" % (engine.prefix, path.encode("ascii"), engine.host)
    return b"%baccept: text/plain\r\n%bconnection: close\r\n\r\n" % (line, key)
