"""A command that runs: under a keeper, with a log and a record, until it is ended or ends by itself."""

import asyncio
import os
from pathlib import Path

from withstand.errors import EngineError
from withstand.files import discard
from withstand.gateway.address import Origin
from withstand.gateway.aside import aside
from withstand.gateway.hosting import orphans
from withstand.gateway.hosting.cause import cause, secrets_of
from withstand.gateway.hosting.config import Hosted
from withstand.processes import KEEPER_S, under_keeper
from withstand.processes.cut import cut
from withstand.processes.diary import note
from withstand.processes.words import ending

_LOOK_S = 1.0
"""How often it is seen to that the log is not longer."""


class Child:
    """Made by ``spawned``; whoever has one ends it."""

    def __init__(self, process: asyncio.subprocess.Process, told: Hosted, path: Path, log: "_Log") -> None:
        self._process = process
        self._told = told
        self._said = path, log.start
        self._record: Path | None = None
        self._is_told = False
        self.exited = asyncio.ensure_future(process.wait())
        self._minding = asyncio.ensure_future(self._mind(log))

    @classmethod
    async def spawned(cls, origin: Origin, told: Hosted, folder: Path) -> "Child":
        """Started, and no more than that.

        Raises:
            EngineError: it cannot be.
        """
        path = Path(told.log) if told.log else folder / f"{origin.host}-{origin.port}.log"
        token = orphans.new_token()
        try:
            log = _Log(path, folder, fresh=told.log is None)
            try:
                process = await _exec(told, log.descriptor, token)
            except BaseException:
                log.close("cannot be started")
                raise
        except OSError as e:
            raise EngineError(f"The engine {origin.name} cannot be started: {e.filename}: {e.strerror}.") from None
        child = cls(process, told, path, log)
        child._record = orphans.remember(folder, process.pid, token, told.stop_s)
        return child

    def why(self) -> str:
        """How it ended, if it did, and what it said."""
        return cause(*self._said, self._process.returncode, secrets_of(self._told, os.environ))

    async def end(self) -> None:
        """The keeper ends what it keeps when its stdin does; should it not, the kernel does with the keeper."""
        assert self._process.stdin is not None
        self._is_told = not self.exited.done()
        self._process.stdin.close()
        done, _ = await asyncio.wait({self.exited}, timeout=self._told.stop_s + KEEPER_S)
        if not done:
            self._process.kill()
            await self.exited
        await self._minding
        if self._record is not None:
            discard(self._record)

    async def _mind(self, log: "_Log") -> None:
        """Its log, until it has ended; how it has is the last word."""
        try:
            await log.mind(self.exited)
        finally:
            by_itself = f"ended by itself{ending(self._process.returncode)}"
            log.close("has ended, as the gateway wanted" if self._is_told else by_itself)


class _Log:
    """Where it writes to, open for as long as it runs; ``start`` is where its part begins."""

    def __init__(self, path: Path, folder: Path, *, fresh: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        anew = os.O_TRUNC if fresh else 0
        self.descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | anew, 0o666)
        self._name = path.stem
        self._note("starts, for somebody asks for it")
        self.start = os.fstat(self.descriptor).st_size

    async def mind(self, exited: "asyncio.Future[int]") -> None:
        """Keep it within its bound until then, beside the loop."""
        while not exited.done():
            await asyncio.wait({exited}, timeout=_LOOK_S)
            await aside(cut, self.descriptor)

    def close(self, how: str) -> None:
        """With how it ended."""
        self._note(how)
        os.close(self.descriptor)

    def _note(self, what: str) -> None:
        note(self.descriptor, f"{self._name} {what}")


async def _exec(told: Hosted, log: int, token: str) -> asyncio.subprocess.Process:
    assert told.command is not None
    return await asyncio.create_subprocess_exec(
        *under_keeper(told.command, told.stop_s),
        env=os.environ | told.env | {orphans.TOKEN: token},
        cwd=told.cwd,
        stdin=asyncio.subprocess.PIPE,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
