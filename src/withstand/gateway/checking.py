"""Engines that want it are asked whether they are well, beside the way of the tokens.

Any status below 500 is an answer of one that is well, as it is for the breaker. One that does not know the page is
asked for ``/v1/models``. One that is not up, of those that the gateway starts, is not asked.
"""

import asyncio
import errno
from contextlib import suppress
from typing import TYPE_CHECKING

from withstand.gateway.config import Health
from withstand.gateway.engine import Engine
from withstand.gateway.polling import question
from withstand.gateway.status import status_of
from withstand.gateway.trouble import why_of

if TYPE_CHECKING:
    from withstand.gateway.house import House

_OTHER_PATH = "/v1/models"
_KNOCK_S = 2.0
_UNKNOWN_PAGE = frozenset((404, 405, 501))


class Checking:
    """``look`` often: each check is a task of its own, and an engine has one at a time here."""

    def __init__(self, house: "House") -> None:
        self._house = house
        self._tasks: dict[Engine, asyncio.Task[None]] = {}
        self._knocks: dict[Engine, asyncio.Task[None]] = {}
        """To engines that could not be reached: a connection, and no question. Else who sends requests only where
        ``/ready`` says so would never find out that they are back."""
        self._ill: set[Engine] = set()

    def look(self, now_s: float) -> None:
        """Begin what is due; take back who was found well again, whichever worker found it."""
        engines = self._house.roster.engines.values()
        for engine in engines:
            told = engine.health
            if told is None or not engine.is_up:
                if engine.checkup.is_ill and not engine.removed:
                    engine.checkup.forget()
            elif engine not in self._tasks and engine.checkup.is_due(now_s, told, engine.name):
                self._tasks[engine] = self._house.loop.create_task(self._check(engine, told))
            if engine.is_unreachable and engine.is_up and engine not in self._knocks:
                self._knocks[engine] = self._house.loop.create_task(self._knock(engine))
        ill = {engine for engine in engines if engine.checkup.is_ill}
        for engine in self._ill - ill:
            engine.recovered(now_s)
        self._ill = ill

    def close(self) -> None:
        """Ask nobody any more."""
        for task in (*self._tasks.values(), *self._knocks.values()):
            task.cancel()

    async def _check(self, engine: Engine, told: Health) -> None:
        try:
            trouble = await _trouble(engine, told)
        finally:
            del self._tasks[engine]
        if trouble is not None and engine.health == told and engine.is_up:
            engine.checkup.found(told, trouble)

    async def _knock(self, engine: Engine) -> None:
        """Taken back, it warms up."""
        try:
            await asyncio.sleep(_KNOCK_S)
            with suppress(OSError, UnicodeError):
                async with asyncio.timeout(_KNOCK_S):
                    link = await engine.dial(self._house.loop)
                link.close()
                if engine.is_unreachable:
                    engine.recovered(self._house.now_s())
                    self._house.lobby.stir()
        finally:
            del self._knocks[engine]


async def _trouble(engine: Engine, told: Health) -> str | None:
    """Why it is not well; nothing = it is, None = we could not ask."""
    try:
        async with asyncio.timeout(told.timeout_s):
            status = await _status(engine, told.path)
            if status in _UNKNOWN_PAGE:
                status = await _status(engine, _OTHER_PATH)
            return f"it answers {status}" if status in range(500, 600) and status not in _UNKNOWN_PAGE else ""
    except OSError as e:
        return None if e.errno in {errno.EMFILE, errno.ENFILE} else why_of(e)
    except ValueError:
        return "what it answers is not HTTP"


async def _status(engine: Engine, path: str) -> int:
    return await status_of(engine.origin, question(engine, path), engine.context)
