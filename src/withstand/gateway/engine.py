"""An engine as the gateway sees it: its address, what it has to do, and its connections that wait for work."""

import asyncio
import math
import ssl
from collections.abc import Callable

from withstand.gateway.address import Origin
from withstand.gateway.breaker import Breaker
from withstand.gateway.checkup import Checkup
from withstand.gateway.config import Health, Poll, Role
from withstand.gateway.familiar import Memory
from withstand.gateway.hosting.config import Hosted
from withstand.gateway.hosting.process import Process
from withstand.gateway.link import AnswerHead, Link
from withstand.gateway.load import Unseen
from withstand.gateway.trouble import Note, Trouble
from withstand.gateway.workers.board import Cell, Row, private_row

IDLE_S = 4.0
"""Shorter than servers keep a quiet connection (uvicorn: 5 s): who closes first at the wrong moment costs a retry."""
_IDLE_MAX = 1024
BOOTSTRAP_PORT = 8998
"""SGLang's default."""
_COLD = 0.1
"""The part of its weight that an engine begins with, as Envoy's slow start has it."""


class Engine:
    """Shared by all models that it serves, so that its load is one number.

    ``row``: what all workers of the gateway know of it; None = there is one. ``since_s``: when it joined or came back;
    whatever was there when the gateway began is taken for warm.
    """

    def __init__(self, origin: Origin, since_s: float = -math.inf, row: Row | None = None) -> None:
        row = row or private_row()
        self.origin = origin
        self.name = origin.name
        self.label = origin.name.encode("ascii")
        self.host = self.label.removesuffix(origin.prefix.encode("ascii"))
        self.prefix = origin.prefix.encode("ascii")
        self.post = b"POST " + self.prefix
        self.host_and_id = self.host + b"\r\nx-request-id: "
        """What stands in each request's head before its target, and before its id."""
        self.breaker = Breaker(row.failures, row.until_s)
        self.checkup = Checkup(row.against, row.ill, row.due_s, row.checked, row.found)
        self.health: Health | None = None
        """How it is checked; None = it is not."""
        self._row = row
        self.sent = 0
        """Requests, since it is known."""
        self.unseen = Unseen()
        self.since_s = since_s
        self.poll: Poll | None = None
        self.credentials: bytes | None = None
        """The gateway's key there, for what is not on a client's behalf."""
        self.draining = False
        """Its owner wants it left alone."""
        self.removed = False
        """It has no seat any more, and ends what it has begun."""
        self.process: Process | None = None
        """Its command, where the gateway starts it."""
        self._said = Note(row.said)
        """Of requests; checks have their own."""
        self.memory = Memory[AnswerHead]()
        """Of heads that came with their answers in one read."""
        self._idle: dict[Link, float] = {}
        self.context = ssl.create_default_context() if origin.tls else None

    def may_be_asked(self, now_s: float) -> bool:
        """It is up, not on its way out, and not failing."""
        if self._row.until_s[0] > now_s or self._row.ill[0] or self.draining or self.removed:  # each worker may tell
            return False
        return self.process is None or self.process.is_open

    @property
    def is_up(self) -> bool:
        """It is ours to ask, and not asleep."""
        return not self.removed and (self.process is None or self.process.is_open)

    def recovered(self, now_s: float) -> None:
        """Its checks have taken it back."""
        self.breaker.worked()
        self.since_s = now_s

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

    @property
    def in_flight(self) -> int:
        """Requests that it has to do for this gateway, through whichever worker."""
        return self._row.total(Cell.UNDER_WAY)

    def load(self, now_s: float) -> float:
        """What it has to do, and what else speaks against it, in requests."""
        return self.in_flight + self.unseen.at(now_s)

    def sends(self, now_s: float) -> None:
        """It gets a request."""
        self._row.under_way[0] += 1
        self.sent += 1
        if self._row.failures[0]:
            self.breaker.began(now_s)

    def rests(self) -> None:
        """It has one less."""
        self._row.under_way[0] -= 1

    def answered(self, status: int, now_s: float) -> None:
        """An answer has begun; any status below 500 shows that it is well, but an error is none that draws more."""
        if status >= 500:
            self.failed(now_s, Trouble(f"it answers {status}"))
            return
        if (self._row.failures[0] or self._row.until_s[0]) and self.breaker.worked():
            self.since_s = now_s
        if status >= 400:
            self.unseen.erred(now_s)
        elif self.unseen.errors:
            self.unseen.worked()

    @property
    def current_trouble(self) -> Trouble | None:
        """What is wrong with it; None = nothing that is known. A request knows more than a check."""
        if self._row.failures[0]:
            return self._said.read()
        return self.checkup.trouble if self._row.ill[0] else None

    @property
    def is_unreachable(self) -> bool:
        """The last connection to it could not be had."""
        return bool(self._row.failures[0]) and self._said.is_unreachable

    def failed(self, now_s: float, trouble: Trouble) -> None:
        """It did not do what it was asked for."""
        self._said.write(trouble)
        self.breaker.failed(now_s)
        self.unseen.erred(now_s)

    async def dial(self, loop: asyncio.AbstractEventLoop) -> Link:
        """A new connection.

        Raises:
            OSError: there is none to be had.
        """
        make: Callable[[], Link] = lambda: Link(self)  # noqa: E731  mypy cannot infer the protocol's type otherwise
        _, link = await loop.create_connection(make, self.origin.host, self.origin.port, ssl=self.context)
        return link

    def waiting_link(self) -> Link | None:
        """The one that was used last, for it lives longest."""
        while self._idle:
            link, _ = self._idle.popitem()
            if not link.transport.is_closing():
                return link
        return None

    def take_back(self, link: Link, now_s: float) -> None:
        """Have a connection wait for more work, if its last answer left it fit for that."""
        if not link.release() or not self.is_there or len(self._idle) >= _IDLE_MAX:
            link.close()
        else:
            self.keep(link, now_s)

    def keep(self, link: Link, now_s: float) -> None:
        """Have one that is fit for work wait for it."""
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

    def __init__(self, engine: Engine, weight: float, served: str, *, warm_up_s: float = 0.0) -> None:
        self.engine = engine
        self.warm_up_s = warm_up_s
        self.credentials: bytes | None = None
        """The gateway's key there."""
        self.weight = weight
        self.max_in_flight: int | None = None
        """Of the engine's requests, of whichever model; None = it is given all that come."""
        self.served = served
        """The model's name there."""
        self.role: Role | None = None
        self.backup = False
        """It is asked only where the others cannot be."""
        self.bootstrap_port = BOOTSTRAP_PORT
        """Where decode engines meet it, if it prefills in SGLang's style."""
        self.credit = 0.0
        """Of its turn (round robin)."""

    @property
    def has_room(self) -> bool:
        """One request more would not be too many."""
        return self.max_in_flight is None or self.engine.in_flight < self.max_in_flight

    def share(self, now_s: float) -> float:
        """Its weight, of which an engine that is new or has come back gets more and more while it warms up."""
        age_s = now_s - self.engine.since_s
        if age_s >= self.warm_up_s:
            return self.weight
        return self.weight * max(_COLD, age_s / self.warm_up_s)

    def load(self, now_s: float) -> float:
        """What the engine has to do, for its share."""
        return self.engine.load(now_s) / self.share(now_s)
