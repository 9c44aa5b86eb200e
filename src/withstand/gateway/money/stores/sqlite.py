"""SQLite: one file, which any number of processes of this machine share (WAL, so that readers and writers do not meet).

A commit outlives the process, even one that is killed; a power cut may take the last ones (``synchronous = NORMAL``).
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from withstand.errors import StorageError
from withstand.gateway.money.rows import Spending, Usage
from withstand.gateway.money.stores import sql
from withstand.gateway.money.stores.store import Batch

_VERSION = 1
_PATIENCE_S = 1.0


class SqliteStore:
    """``writer`` is this process's name among those that write.

    Raises:
        StorageError: the file cannot be used.
    """

    def __init__(self, path: str, writer: str) -> None:
        self._path = path
        self._writer = writer
        with contextlib.suppress(OSError):  # SQLite itself says what is wrong; its other files get the same mode
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o640))
        self._file = _identity(path)
        with self._told():
            self._db = sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False)
            self._prepare()

    def _prepare(self) -> None:
        db = self._db
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        with self._transaction():
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version not in {0, _VERSION}:
                raise StorageError(f"The state {self._path} was written by another version; name another file.")
            for table in sql.TABLES:
                db.execute(table)
            db.execute(f"PRAGMA user_version = {_VERSION}")

    def add(self, batch: Batch) -> None:
        """In one transaction."""
        with self._told(), self._transaction():
            if self._db.execute(sql.NUMBERED.format("?"), (self._writer, batch.number)).rowcount:
                self._db.executemany(sql.ADD_USAGE.format("?"), sql.usage_rows(batch.usage))
                self._db.executemany(sql.ADD_SPENDING.format("?"), sql.spending_rows(batch.usage))

    def spent(self, periods: tuple[str, str, str]) -> Spending:
        """By every key, in these periods."""
        with self._told():
            return sql.spent_of(self._db.execute(sql.SPENT.format("?"), periods).fetchall())

    def usage(self, since: str, until: str) -> Usage:
        """The sums of these days."""
        with self._told():
            return sql.usage_of(self._db.execute(sql.USAGE.format("?"), (since, until)).fetchall())

    def close(self) -> None:
        """The last one to close tidies up the WAL."""
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What is written to a file that was removed or replaced is lost, and no other process sees it."""
        if _identity(self._path) != self._file:
            cure = "put it back, or start the gateway again, which begins with what is there"
            raise StorageError(f"The state {self._path} is gone, or is another file now; {cure}.")
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning) as e:
            cure = "free or repair it, or name another"
            raise StorageError(f"The state {self._path} cannot be used: {e}; {cure}.") from None


def _identity(path: str) -> tuple[int, int] | None:
    """None: nothing is there, or nothing that may be looked at."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
