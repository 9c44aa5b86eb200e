"""What all connections of one gateway share, and the look at what is late."""

import asyncio
import random
from typing import TYPE_CHECKING

from withstand import clock
from withstand.gateway import IS_COMPILED
from withstand.gateway.address import check_elsewhere
from withstand.gateway.bulletin import Bulletin
from withstand.gateway.checking import Checking
from withstand.gateway.config import Config, Timeouts
from withstand.gateway.counts import Counts, Ending
from withstand.gateway.descriptors import Descriptors
from withstand.gateway.engine import IDLE_S
from withstand.gateway.hosting.host import Host, needs_of
from withstand.gateway.incoming import Incoming
from withstand.gateway.journal import Journal
from withstand.gateway.keys import Keyring
from withstand.gateway.ledger import Ledger
from withstand.gateway.money.books import Books
from withstand.gateway.money.stores.opening import open_store
from withstand.gateway.money.till import Permit, Till
from withstand.gateway.polling import Polling
from withstand.gateway.roster import Roster
from withstand.gateway.routes import ROUTES
from withstand.gateway.splicing import Splicing
from withstand.gateway.telling import tell
from withstand.gateway.traces import traces_of
from withstand.gateway.waiting import Lobby
from withstand.gateway.workers.board import Board

if TYPE_CHECKING:
    from withstand.gateway.door import Door
    from withstand.gateway.passage import Passage

_LOOK_S = 0.05
_LOOKS_A_ROUND = 10
"""Connections that wait, and the log, are looked after less often."""


class House:
    """Made before the first connection is accepted, and begun then; lives as long as the process.

    ``board`` is shared with other workers.
    """

    def __init__(
        self, config: Config, loop: asyncio.AbstractEventLoop, *, local: bool, board: Board | None = None
    ) -> None:
        self._board = board = board or Board()
        self.config = config
        self.listen = config.listen
        """With the port that it came to be."""
        self._local = local
        self.loop = loop
        self.now_s = loop.time
        self.splicing = Splicing(loop)
        self.counts = Counts()
        self.ledger = Ledger(self.counts, Journal(config.log_path))
        self.traces = traces_of(config.telemetry, tell)
        self.keyring = Keyring(config.keys, local=local)
        self.lobby = Lobby(loop.call_soon)
        self.roster = Roster(config, random.Random(), self.lobby, board)
        self.host = Host(config.host, self.now_s, self._changed, self.counts.came_up)
        self.timeouts: dict[str, Timeouts] = {path: config.timeouts_of(path) for path in ROUTES}
        books = Books(open_store(config.state, config.state_env), loop, self._hear_of_state)
        self.till = Till(config, self.counts, books, board)
        self.doors: set[Door] = set()
        self.passages: set[Passage] = set()
        self.held_back: set[Door] = set()
        """Those that are not read just now."""
        self.held_bytes = 0
        self.descriptors = Descriptors(self.counts, self.now_s)
        self.draining = False
        self.noted = 0
        """Requests that are over."""
        self._looks_soon = False
        self._trouble: str | None = None
        """What is wrong with the state."""
        self.polling = Polling(self)
        self.checking = Checking(self)
        self._bulletin = Bulletin(tell)
        self._looks = 0
        self._due_ns = 0
        self._next_look: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Look at what is late from now on, and ask engines how they are."""
        self.polling.look()
        self._next_look = self._look_again()

    def note(self, ending: Ending, permit: Permit | None, parent: bytes | None) -> None:
        """A request is over. ``parent``: its client's span."""
        self.noted += 1
        if self.traces is not None:
            self.traces.add(ending, parent)
        self.ledger.add(ending, None if permit is None else self.till.settle(permit, ending, self.now_s()))

    def adopt(self, config: Config) -> None:
        """Another configuration, from the next request on.

        Raises:
            UsageError: a key or the log cannot be had; nothing has changed then.
        """
        for model in config.models.values():
            for engine in model.engines:
                check_elsewhere(engine.origin, self.listen)
        journal = Journal(config.log_path)  # anew, so that a log that was moved away is begun again
        try:
            keyring = Keyring(config.keys, local=self._local)
            self.roster.adopt(config, self.now_s())
        except BaseException:
            journal.close()
            raise
        self.ledger.turn_to(journal)
        self.keyring = keyring
        self.till.apply(config)
        self.timeouts = {path: config.timeouts_of(path) for path in ROUTES}
        self.config, self.host.config = config, config.host
        self.polling.look()
        self._look_at_engines()

    def hold(self, incoming: Incoming, size: int) -> bool:
        """More of a request has come; whether all of them together are still within bounds."""
        incoming.held += size
        self.held_bytes += size
        return self.held_bytes <= self.config.limits.held_bytes

    def let_go(self, incoming: Incoming) -> None:
        """Its body is needed no more."""
        self.held_bytes -= incoming.held
        incoming.held = 0
        incoming.body = b""

    def gauges(self) -> dict[str, tuple[int, str]]:
        """What there is just now."""
        return {
            "requests_in_flight": (len(self.passages), "Requests under way."),
            "client_connections": (len(self.doors), "Clients' open connections."),
            "held_bytes": (self.held_bytes, "Requests' bytes in memory."),
            "compiled": (int(IS_COMPILED), "Whether what a request passes was compiled with the installation."),
        }

    async def close(self) -> None:
        """No more looks; engines of ours have ended, and the log is complete."""
        if self._next_look is not None:
            self._next_look.cancel()
        self.splicing.close()
        self.till.close()
        self.polling.close()
        self.checking.close()
        await self.host.close(self.roster.engines.values())
        self.ledger.close()
        if self.traces is not None:
            self.traces.close()

    def somebody_waits(self) -> None:
        """Perhaps for an engine that is to be started."""
        if not self._looks_soon:
            self._looks_soon = True
            self.loop.call_soon(self._look_at_engines)

    def _changed(self) -> None:
        """An engine of ours came up or went; those who wait are called before it is looked at who still does."""
        self.lobby.stir()
        self.somebody_waits()

    def _look_at_engines(self) -> None:
        self._looks_soon = False
        self.host.look(self.roster.engines.values(), needs_of(self.roster.models.values(), self.now_s()))

    def _hear_of_state(self, trouble: str | None) -> None:
        """Said once, and once when it is over."""
        if trouble is not None:
            self.counts.state_failures += 1
        if (trouble is None) != (self._trouble is None):
            tell(trouble or "The state can be used again; nothing was lost.")
        self._trouble = trouble

    def _look_again(self) -> asyncio.TimerHandle:
        self._due_ns = clock.now_ns() + round(_LOOK_S * 1e9)
        return self.loop.call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        self.counts.lag.add(max(0, clock.now_ns() - self._due_ns))
        self._next_look = self._look_again()
        now_s = self.now_s()
        for passage in tuple(self.passages):
            passage.look(now_s)
        self._look_at_engines()
        self.checking.look(now_s)
        for door in tuple(self.held_back):
            door.listen()
        self.lobby.stir()  # an engine's time to be left alone may be over
        self._looks += 1
        if self._looks % _LOOKS_A_ROUND == 0:
            self._go_round(now_s)

    def _go_round(self, now_s: float) -> None:
        for door in tuple(self.doors):
            door.look(now_s)
        for engine in self.roster.engines.values():
            engine.close_idle(now_s - IDLE_S)
        self.roster.sweep()
        if self._board.speaks:
            self._bulletin.look(self.roster.engines.values(), now_s)
        self.till.look(now_s)
        self.polling.look()
        self.ledger.flush()
