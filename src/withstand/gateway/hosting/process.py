"""One engine's command and what becomes of it: cold, starting, up, stopping, and cold again.

Why it shall start or stop is not known here.
"""

import asyncio
import contextlib
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct

from withstand import clock
from withstand.errors import EngineError
from withstand.gateway.address import Origin
from withstand.gateway.hosting.backoff import Backoff
from withstand.gateway.hosting.child import Child
from withstand.gateway.hosting.config import Hosted
from withstand.gateway.hosting.health import is_ready, is_taken

_LOOK_S = 0.05
_DOUBT_S = 1.0


class State(Enum):
    """Where it is in its life."""

    COLD = "cold"
    STARTING = "starting"
    UP = "up"
    STOPPING = "stopping"


class Place(Struct, frozen=True):
    """What all commands of one gateway share."""

    folder: Path
    """Of logs and records."""
    cleared: "asyncio.Future[None]"
    """Done when an earlier gateway's engines are gone."""
    now_s: Callable[[], float]
    changed: Callable[[], None]
    """Called after each change of a state."""
    started: Callable[[str, int], None]
    """Called with an engine's name and the length of its cold start, in ns."""


class Process:
    """Of the engine at ``origin``; ``told`` may be replaced at any time, and counts from the next start."""

    def __init__(self, origin: Origin, told: Hosted) -> None:
        self.origin = origin
        self.told = told
        self.state = State.COLD
        self.closing = False
        """It gets no new requests, because it is to make room."""
        self.failure: str | None = None
        """Why it is not up though it was asked for: a sentence."""
        self.backoff = Backoff()
        self.asked_ns = self.ready_ns = 0
        """When the last start was asked for, and done."""
        self.ready_s = 0.0
        self.used_s = 0.0
        """When it was last seen to do something; ``begun_seen`` is how many requests it had had then."""
        self.begun_seen = 0
        self._doubted_s: float | None = None
        self._running: Hosted | None = None
        self._to_end = asyncio.Event()
        self._life: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """It takes requests; somebody else's engine always does."""
        up = self.state is State.UP and not self.closing and self._doubted_s is None
        return up or (self.state is State.COLD and self.told.command is None)

    def may_come(self, now_s: float) -> bool:
        """It is worth waiting for, though it is not open; not while a command that failed is left alone."""
        if self.state is State.COLD:
            return self.told.command is not None and not self.backoff.left_s(now_s)
        return not self.is_open

    def doubt(self, now_s: float) -> bool:
        """It takes no connections. If it has ended, that is or will be known; whether it is ours to start again."""
        if self.state is State.UP:
            self._doubted_s = now_s
        return self.state is not State.COLD or self.told.command is not None

    def trust(self, now_s: float) -> None:
        """It was doubted, and yet is still there."""
        if self._doubted_s is not None and now_s - self._doubted_s > _DOUBT_S:
            self._doubted_s = None

    @property
    def is_outdated(self) -> bool:
        """It runs by another command than it would be started with now."""
        now, then = self.told, self._running
        return then is not None and (now.command, now.env, now.cwd) != (then.command, then.env, then.cwd)

    @property
    def has_memory(self) -> bool:
        """It is starting, up or stopping."""
        return self.state is not State.COLD

    @property
    def memory_gb(self) -> float:
        """What it takes while it is not cold, or would take."""
        return (self._running or self.told).memory_gb or 0.0

    def cold_ns(self, since_ns: int) -> int:
        """How much of the time since then the last start has taken."""
        return max(0, self.ready_ns - max(self.asked_ns, since_ns))

    def start(self, place: Place, asked_ns: int) -> None:
        """Have it come up; somebody asked for it then."""
        assert self.state is State.COLD
        self.state, self.closing, self.asked_ns = State.STARTING, False, asked_ns
        self._doubted_s = None
        self._running = self.told
        self._to_end.clear()
        self._life = asyncio.get_running_loop().create_task(self._live(place, self.told))

    def stop(self) -> None:
        """Have it end."""
        if self.state is not State.COLD:
            self.state = State.STOPPING
            self._to_end.set()

    async def gone(self) -> None:
        """Until it is cold."""
        if self._life is not None:
            await self._life

    # One life.

    async def _live(self, place: Place, told: Hosted) -> None:
        try:
            await self._from_start_to_end(place, told)
        except EngineError as e:
            self._failed(str(e), place.now_s())
        except (OSError, ValueError) as e:  # a host that no name can be made of, a word with a NUL in it
            self._failed(f"The engine {self.origin.name} cannot be started: {e}.", place.now_s())
        finally:
            self.state, self._running, self._life = State.COLD, None, None
            place.changed()

    async def _from_start_to_end(self, place: Place, told: Hosted) -> None:
        await place.cleared
        if await is_taken(self.origin):
            cure = "end that, or take the command out to use it as it is"
            raise EngineError(
                f"Something listens at {self.origin.name} already, where an engine was to be started; {cure}."
            )
        child = await Child.spawned(self.origin, told, place.folder)
        to_end: asyncio.Future[Any] = asyncio.ensure_future(self._to_end.wait())
        try:
            await self._until_ready(child, told, to_end)
            self._is_up(place)
            await asyncio.wait({child.exited, to_end}, return_when=asyncio.FIRST_COMPLETED)
            if to_end.done():
                self.backoff.ended()
            else:
                self._crashed(child, place.now_s())
        finally:
            self.state = State.STOPPING
            to_end.cancel()
            await child.end()

    async def _until_ready(self, child: Child, told: Hosted, to_end: "asyncio.Future[Any]") -> None:
        """Until it answers, or is not wanted any more.

        Raises:
            EngineError: it has ended, or the time is over.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(told.start_timeout_s):
                while not to_end.done() and not child.exited.done():
                    if await is_ready(self.origin, told.ready) and not child.exited.done():
                        return
                    await asyncio.wait({child.exited, to_end}, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
        if not to_end.done():
            late = (
                f"was not ready within {told.start_timeout_s:g} s (GET {told.ready} at its url was not answered by 2xx)"
            )
            how = "ended at its start" if child.exited.done() else late
            raise EngineError(f"The engine {self.origin.name} {how}{child.why()}.")

    def _is_up(self, place: Place) -> None:
        if self._to_end.is_set():
            return
        self.failure = None
        self.state = State.UP
        self.ready_ns = clock.now_ns()
        self.ready_s = self.used_s = place.now_s()
        place.started(self.origin.name, self.ready_ns - self.asked_ns)
        place.changed()

    def _failed(self, why: str, now_s: float) -> None:
        self.failure = why
        self.backoff.failed(now_s)

    def _crashed(self, child: Child, now_s: float) -> None:
        self.failure = f"The engine {self.origin.name} ended by itself{child.why()}."
        self.backoff.crashed(now_s - self.ready_s, now_s)
