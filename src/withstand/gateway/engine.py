"""An engine as the gateway sees it: its address, what it has to do, and its connections that wait for work."""

import asyncio
import ssl
from collections.abc import Callable

from withstand.gateway.address import Origin
from withstand.gateway.breaker import Breaker
from withstand.gateway.hosting.config import Hosted
from withstand.gateway.hosting.process import Process
from withstand.gateway.link import Link

IDLE_S = 4.0
"""Shorter than servers keep a quiet connection (uvicorn: 5 s): who closes first at the wrong moment costs a retry."""
_IDLE_MAX = 1024


class Engine:
    """Shared by all models that it serves, so that its load is one number."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.name = origin.name
        self.label = origin.name.encode("ascii")
        self.host = self.label.removesuffix(origin.prefix.encode("ascii"))
        self.prefix = origin.prefix.encode("ascii")
        self.breaker = Breaker()
        self.in_flight = 0
        self.begun = 0
        """Requests that it was given since the start."""
        self.draining = False
        """Its owner wants it left alone."""
        self.removed = False
        """It has no seat any more, and ends what it has begun."""
        self.process: Process | None = None
        """Its command, where the gateway starts it."""
        self._idle: dict[Link, float] = {}
        self._context = ssl.create_default_context() if origin.tls else None

    def may_be_asked(self, now_s: float) -> bool:
        """It is up, not on its way out, and not failing."""
        return self.is_there and not self.breaker.is_open(now_s)

    @property
    def is_there(self) -> bool:
        """It may be asked, well or not."""
        return not (self.draining or self.removed) and (self.process is None or self.process.is_open)

    def is_coming(self, now_s: float) -> bool:
        """It cannot be asked yet, but is worth waiting for: it is being started, or will be."""
        return not (self.draining or self.removed) and self.process is not None and self.process.may_come(now_s)

    def seems_gone(self, now_s: float) -> bool:
        """Nobody listens there; whether that is for the gateway to mend."""
        return self.process is not None and self.process.doubt(now_s)

    def cold_ns(self, since_ns: int) -> int:
        """How much of the time since then it took to start."""
        return 0 if self.process is None else self.process.cold_ns(since_ns)

    def be_hosted(self, told: Hosted) -> None:
        """It is, or is not any more, started by the gateway; what runs goes on until it is free."""
        if self.process is not None:
            self.process.told = told
        elif told.command is not None:
            self.process = Process(self.origin, told)

    def take(self, now_s: float) -> None:
        """One more request to do."""
        self.in_flight += 1
        self.begun += 1
        self.breaker.began(now_s)

    async def dial(self, loop: asyncio.AbstractEventLoop) -> Link:
        """A new connection.

        Raises:
            OSError: there is none to be had.
        """
        make: Callable[[], Link] = lambda: Link(self)  # noqa: E731  mypy cannot infer the protocol's type otherwise
        _, link = await loop.create_connection(make, self.origin.host, self.origin.port, ssl=self._context)
        return link

    def waiting_link(self) -> Link | None:
        """The one that was used last, for it lives longest."""
        while self._idle:
            link, _ = self._idle.popitem()
            if not link.is_closing:
                return link
        return None

    def keep(self, link: Link, now_s: float) -> None:
        """Have a connection wait for more work."""
        if not self.is_there or len(self._idle) >= _IDLE_MAX:
            link.close()
        else:
            self._idle[link] = now_s

    def forget(self, link: Link) -> None:
        """It was closed while it waited."""
        self._idle.pop(link, None)

    def close_idle(self, before_s: float) -> None:
        """Close what has waited since before then."""
        for link in [link for link, since_s in self._idle.items() if since_s < before_s]:
            del self._idle[link]
            link.close()


class Seat:
    """An engine's place among those of a model."""

    def __init__(self, engine: Engine, weight: float, served: str, credentials: bytes | None = None) -> None:
        self.engine = engine
        self.credentials = credentials
        """The gateway's key there."""
        self.weight = weight
        self.max_in_flight: int | None = None
        """Of the engine's requests, of whichever model; None = it is given all that come."""
        self.served = served
        """The model's name there."""
        self.credit = 0.0
        """Of its turn (round robin)."""

    @property
    def has_room(self) -> bool:
        """One request more would not be too many."""
        return self.max_in_flight is None or self.engine.in_flight < self.max_in_flight

    @property
    def load(self) -> float:
        """What the engine has to do, for its weight."""
        return self.engine.in_flight / self.weight
