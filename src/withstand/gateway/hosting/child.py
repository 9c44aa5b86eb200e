"""A command that runs: under a keeper, with a log and a record, until it is ended or ends by itself."""

import asyncio
import os
from pathlib import Path
from typing import BinaryIO

from withstand.errors import EngineError
from withstand.files import discard
from withstand.gateway.address import Origin
from withstand.gateway.hosting import orphans
from withstand.gateway.hosting.cause import cause, secrets_of
from withstand.gateway.hosting.config import Hosted
from withstand.processes import KEEPER_S, under_keeper


class Child:
    """Made by ``spawned``; whoever has one ends it."""

    def __init__(self, process: asyncio.subprocess.Process, told: Hosted, log: tuple[Path, int]) -> None:
        self._process = process
        self._told = told
        self._log = log
        self._record: Path | None = None
        self.exited = asyncio.ensure_future(process.wait())

    @classmethod
    async def spawned(cls, origin: Origin, told: Hosted, folder: Path) -> "Child":
        """Started, and no more than that.

        Raises:
            EngineError: it cannot be.
        """
        path = Path(told.log) if told.log else folder / f"{origin.host}-{origin.port}.log"
        token = orphans.new_token()
        try:
            with _opened(path, folder, fresh=told.log is None) as log:
                start = log.tell()
                process = await _exec(told, log, token)
        except OSError as e:
            raise EngineError(f"The engine {origin.name} cannot be started: {e.filename}: {e.strerror}.") from None
        child = cls(process, told, (path, start))
        child._record = orphans.remember(folder, process.pid, token, told.stop_s)
        return child

    def why(self) -> str:
        """How it ended, if it did, and what it said."""
        return cause(*self._log, self._process.returncode, secrets_of(self._told, os.environ))

    async def end(self) -> None:
        """The keeper ends what it keeps when its stdin does; should it not, the kernel does with the keeper."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        done, _ = await asyncio.wait({self.exited}, timeout=self._told.stop_s + KEEPER_S)
        if not done:
            self._process.kill()
            await self.exited
        if self._record is not None:
            discard(self._record)


def _opened(path: Path, folder: Path, *, fresh: bool) -> BinaryIO:
    folder.mkdir(parents=True, exist_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("wb" if fresh else "ab")


async def _exec(told: Hosted, log: BinaryIO, token: str) -> asyncio.subprocess.Process:
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
