"""Sessions by name, each with its messages in checkpoints; one task at a time in each."""

import hashlib
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from withstand.errors import StorageError

_WAIT_MS = 2000
"""For another process that has the file; meanwhile all sessions wait."""
_PRUNE = """
DELETE FROM {table} WHERE thread_id = ? AND checkpoint_id <
    (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ?)
"""
_FORGET = """
DELETE FROM {table} WHERE thread_id NOT IN
    (SELECT thread_id FROM checkpoints GROUP BY thread_id ORDER BY max(checkpoint_id) DESC LIMIT ?)
"""
_TABLES = ("writes", "checkpoints")  # in this order: the second one says what is the latest


class BusyError(Exception):
    """The session has a task under way."""


class StoreError(Exception):
    """The sessions' file cannot be read or written; the text says why."""

    def __init__(self, why: object) -> None:
        super().__init__(f"The agent's sessions cannot be had: {why}.")


class Sessions:
    """Kept by the saver; ``busy`` are those with a task under way."""

    def __init__(self, saver: AsyncSqliteSaver, keep: int) -> None:
        self.saver = saver
        self._keep = keep
        self._busy: set[str] = set()

    @contextmanager
    def alone(self, thread: str) -> Iterator[None]:
        """Nobody else in this session.

        Raises:
            BusyError: somebody is.
        """
        if thread in self._busy:
            raise BusyError
        self._busy.add(thread)
        try:
            yield
        finally:
            self._busy.discard(thread)

    async def tidy(self, thread: str) -> None:
        """Of this session the latest checkpoint, and of all sessions the latest ones; what cannot be tidied waits."""
        async with self.saver.lock:
            try:
                await self._tidy(thread)
            except sqlite3.Error:
                with suppress(sqlite3.Error):
                    await self.saver.conn.rollback()

    async def _tidy(self, thread: str) -> None:
        for table in _TABLES:
            await self.saver.conn.execute(_PRUNE.format(table=table), (thread, thread))
        for table in _TABLES:
            await self.saver.conn.execute(_FORGET.format(table=table), (self._keep,))
        await self.saver.conn.commit()

    async def is_known(self, thread: str) -> bool:
        """Whether something was said in it.

        Raises:
            StoreError: nobody can tell.
        """
        try:
            return await self.saver.aget_tuple({"configurable": {"thread_id": thread}}) is not None
        except Exception as e:  # noqa: BLE001  SQLite's errors, and those of whatever stands in a file that is damaged
            raise StoreError(e) from None


@asynccontextmanager
async def sessions_in(path: str | None, keep: int) -> AsyncIterator[Sessions]:
    """Those of a file, or of memory.

    Raises:
        StorageError: the file is damaged.
    """
    async with AsyncSqliteSaver.from_conn_string(path or ":memory:") as saver:
        await saver.conn.execute(f"PRAGMA busy_timeout = {_WAIT_MS}")
        async with saver.conn.execute("PRAGMA quick_check(1)") as cursor:
            row = await cursor.fetchone()
        if row != ("ok",):
            raise StorageError(f"sessions.path: {path} is damaged. Choose another file, or move this one away.")
        await saver.setup()
        yield Sessions(saver, keep)


def thread_of(name: str, owner: str) -> str:
    """A session's key: the same name of another owner (an ``authorization`` header) is another session."""
    return hashlib.sha256(f"{owner}\0{name}".encode()).hexdigest()
