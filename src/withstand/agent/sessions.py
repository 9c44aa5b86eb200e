"""Sessions by name, each with its messages in checkpoints; one task at a time in each."""

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

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
        """Of this session the latest checkpoint, and of all sessions the latest ones."""
        async with self.saver.lock:
            for table in _TABLES:
                await self.saver.conn.execute(_PRUNE.format(table=table), (thread, thread))
            for table in _TABLES:
                await self.saver.conn.execute(_FORGET.format(table=table), (self._keep,))
            await self.saver.conn.commit()

    async def is_known(self, thread: str) -> bool:
        """Whether something was said in it."""
        return await self.saver.aget_tuple({"configurable": {"thread_id": thread}}) is not None


@asynccontextmanager
async def sessions_in(path: str | None, keep: int) -> AsyncIterator[Sessions]:
    """Those of a file, or of memory."""
    async with AsyncSqliteSaver.from_conn_string(path or ":memory:") as saver:
        await saver.setup()
        yield Sessions(saver, keep)


def thread_of(name: str, owner: str) -> str:
    """A session's key: the same name of another owner (an ``authorization`` header) is another session."""
    return hashlib.sha256(f"{owner}\0{name}".encode()).hexdigest()
