"""PostgreSQL: for gateways on several machines. Connected anew after whatever has gone wrong."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from withstand.errors import StorageError
from withstand.gateway.money.rows import Spending, Usage
from withstand.gateway.money.stores import sql
from withstand.gateway.money.stores.store import Batch

_CONNECT_S = 3
_STATEMENT_MS = 5000
_LOCK = 0x7769_7468
"""Two that create the same table at once would fail over each other."""
_NUMBERED, _ADD_USAGE, _ADD_SPENDING, _SPENT, _USAGE = (
    statement.format("%s").encode()
    for statement in (sql.NUMBERED, sql.ADD_USAGE, sql.ADD_SPENDING, sql.SPENT, sql.USAGE)
)


class PostgresStore:
    """``url`` may hold a password, and is in no message; ``name`` is what people see.

    Raises:
        StorageError: the database cannot be used.
    """

    def __init__(self, url: str, name: str, writer: str) -> None:
        self._url = url
        self._name = name
        self._writer = writer
        self._db: psycopg.Connection[Any] | None = None
        with self._connected() as db:
            db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            for table in sql.TABLES:
                db.execute(table.encode())

    def add(self, batch: Batch) -> None:
        """In one transaction."""
        with self._connected() as db:
            if db.execute(_NUMBERED, (self._writer, batch.number)).rowcount:
                with db.cursor() as cursor:
                    cursor.executemany(_ADD_USAGE, sql.usage_rows(batch.usage))
                    cursor.executemany(_ADD_SPENDING, sql.spending_rows(batch.usage))

    def spent(self, periods: tuple[str, str, str]) -> Spending:
        """By every key, in these periods."""
        with self._connected() as db:
            return sql.spent_of(db.execute(_SPENT, periods).fetchall())

    def usage(self, since: str, until: str) -> Usage:
        """The sums of these days."""
        with self._connected() as db:
            return sql.usage_of(db.execute(_USAGE, (since, until)).fetchall())

    def close(self) -> None:
        """End the connection."""
        if self._db is not None:
            self._db.close()

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        """One transaction."""
        try:
            if self._db is None or self._db.closed:
                self._db = psycopg.connect(
                    self._url, connect_timeout=_CONNECT_S, options=f"-c statement_timeout={_STATEMENT_MS}"
                )
            with self._db.transaction():
                yield self._db
        except psycopg.Error as e:
            self.close()
            said = " ".join(str(e).split())
            raise StorageError(f"The state {self._name} cannot be used: {said}; start it, or name another.") from None
