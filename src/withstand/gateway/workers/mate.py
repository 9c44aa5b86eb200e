"""A worker's side: it hears from the foreman what all must do, and asks it for what only all can answer."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from withstand.gateway.control.changes import made
from withstand.gateway.control.crew import page_of
from withstand.gateway.house import House
from withstand.gateway.workers.foreman import Station
from withstand.gateway.workers.pages import together
from withstand.gateway.workers.words import (
    Begin,
    Done,
    Lines,
    Make,
    Order,
    Page,
    Pages,
    Ready,
    Scrape,
    Tell,
    Waits,
    Word,
    line_of,
)

_ANSWER_S = 5.0
"""The foreman answers at once; where it does not, something is very wrong."""


class Mate(asyncio.Protocol):
    """``alone`` is called when there is no foreman any more: nobody would see to the rest, so it is time to end."""

    def __init__(self, number: int, house: House, alone: Callable[[], None]) -> None:
        self._number = number
        self._house = house
        self._alone = alone
        self._lines = Lines()
        self._transport = cast("asyncio.Transport", None)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._numbers = 0
        self._begun = asyncio.Event()

    async def join(self, station: Station) -> None:
        """Do what the others have done before."""
        await self._house.loop.create_unix_connection(lambda: self, sock=station.sock)
        await self._begun.wait()

    def ready(self) -> None:
        """We listen."""
        self._say(Ready())

    def waits(self, requests: int, most_s: float) -> None:
        """We have these yet to end."""
        self._say(Waits(requests, most_s))

    # For the control plane.

    async def make(self, kind: str, told: str) -> dict[str, Any]:
        """Have everybody make a change; what there is here then."""
        answer: dict[str, Any] = await self._answer(Order(self._number_of_next(), kind, told))
        return answer

    async def page(self) -> str:
        """The metrics of all."""
        others: list[str] = await self._answer(Scrape(self._number_of_next()))
        return together(page_of(self._house), others)

    def _number_of_next(self) -> int:
        self._numbers += 1
        return self._numbers

    async def _answer(self, question: Order | Scrape) -> Any:
        future = self._asked[question.number] = self._house.loop.create_future()
        self._say(question)
        try:
            async with asyncio.timeout(_ANSWER_S):
                return await future
        finally:
            del self._asked[question.number]

    # What the foreman says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio's."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Asyncio's."""
        for word in self._lines.feed(data):
            self._hear(word)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  however it went
        """Asyncio's."""
        self._begun.set()
        self._alone()

    def _hear(self, word: Word) -> None:
        match word:
            case Make():
                self._make(word)
            case Begin():
                self._begun.set()
            case Tell():
                self._say(Page(page_of(self._house)))
            case Pages():
                self._settle(word.number, word.texts)
            case _:
                raise AssertionError(word)

    def _make(self, change: Make) -> None:
        """All make the same changes in the same order, so what cannot be made here could not be made there either."""
        ours = change.by == self._number and self._begun.is_set()
        try:
            answer = made(self._house, change.kind, change.told)
        except Exception as e:  # noqa: BLE001  one that nobody foresaw is for whoever asked, too
            if ours:
                self._say(Done(change.number, good=False))
                self._settle(change.number, e)
            return
        if ours:
            self._say(Done(change.number, good=True))
            self._settle(change.number, answer)

    def _settle(self, number: int, answer: Any) -> None:
        future = self._asked.get(number)
        if future is None or future.done():
            return  # whoever asked has left
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def _say(self, word: Word) -> None:
        self._transport.write(line_of(word))
