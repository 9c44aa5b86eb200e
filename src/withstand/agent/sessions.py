"""Sessions by name, each with its messages in checkpoints; one task at a time in each."""

import hashlib
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import NamedTuple

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
_UNDO = "DELETE FROM {table} WHERE thread_id = ? AND checkpoint_id > ?"
_TABLES = ("writes", "checkpoints")  # in this order: the second one says what is the latest


class BusyError(Exception):
    """The session has a task under way."""


class StoreError(Exception):
    """The sessions' file cannot be read or written; the text says why."""

    def __init__(self, why: object) -> None:
        super().__init__(f"The agent's sessions cannot be had: {why}.")


class Before(NamedTuple):
    """A session before a task: its latest checkpoint ("" = none), and how many messages it has."""

    checkpoint: str
    messages: int


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
        await self._do([(_PRUNE, (thread, thread)), (_FORGET, (self._keep,))])

    async def undo(self, thread: str, before: "Before") -> None:
        """As it was; what cannot be undone stays, and is left out when it is too long."""
        await self._do([(_UNDO, (thread, before.checkpoint))])

    async def _do(self, orders: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        async with self.saver.lock:
            try:
                for text, values in orders:
                    for table in _TABLES:
                        await self.saver.conn.execute(text.format(table=table), values)
                await self.saver.conn.commit()
            except sqlite3.Error:
                with suppress(sqlite3.Error):
                    await self.saver.conn.rollback()

    async def before(self, thread: str) -> "Before":
        """What is there of it.

        Raises:
            StoreError: nobody can tell.
        """
        try:
            found = await self.saver.aget_tuple({"configurable": {"thread_id": thread}})
            if found is None:
                return Before("", 0)
            return Before(found.checkpoint["id"], len(found.checkpoint["channel_values"].get("messages", ())))
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
