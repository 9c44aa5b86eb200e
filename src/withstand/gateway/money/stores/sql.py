"""The tables and statements that SQLite and PostgreSQL share; ``{}`` is where a value goes."""

from collections.abc import Iterable, Sequence
from typing import Any

from withstand.gateway.money.rows import SUM_NAMES, Slot, Spending, Sums, Usage, spending_of

_SUMS = ", ".join(SUM_NAMES)

TABLES = (
    f"""CREATE TABLE IF NOT EXISTS withstand_usage (owner TEXT NOT NULL, model TEXT NOT NULL, day TEXT NOT NULL,
    {", ".join(f"{name} BIGINT NOT NULL" for name in SUM_NAMES)}, PRIMARY KEY (day, owner, model))""",
    """CREATE TABLE IF NOT EXISTS withstand_spending (owner TEXT NOT NULL, period TEXT NOT NULL, nusd BIGINT NOT NULL,
    PRIMARY KEY (period, owner))""",
    "CREATE TABLE IF NOT EXISTS withstand_writers (writer TEXT PRIMARY KEY, number BIGINT NOT NULL)",
)
NUMBERED = """INSERT INTO withstand_writers (writer, number) VALUES ({0}, {0})
ON CONFLICT (writer) DO UPDATE SET number = excluded.number WHERE withstand_writers.number < excluded.number"""
"""Changes no row where this number was there already."""
ADD_USAGE = f"""INSERT INTO withstand_usage (owner, model, day, {_SUMS})
VALUES ({", ".join(["{0}"] * (3 + len(SUM_NAMES)))}) ON CONFLICT (day, owner, model) DO UPDATE SET
{", ".join(f"{name} = withstand_usage.{name} + excluded.{name}" for name in SUM_NAMES)}"""  # noqa: S608  our own names
ADD_SPENDING = """INSERT INTO withstand_spending (owner, period, nusd) VALUES ({0}, {0}, {0})
ON CONFLICT (period, owner) DO UPDATE SET nusd = withstand_spending.nusd + excluded.nusd"""
SPENT = "SELECT owner, period, nusd FROM withstand_spending WHERE period IN ({0}, {0}, {0})"
USAGE = f"SELECT owner, model, day, {_SUMS} FROM withstand_usage WHERE day BETWEEN {{0}} AND {{0}}"  # noqa: S608  same


def usage_rows(usage: Usage) -> list[tuple[Any, ...]]:
    """In an order that all writers keep, so that none waits for another in a circle."""
    return [(*slot, *(getattr(sums, name) for name in SUM_NAMES)) for slot, sums in sorted(usage.items(), key=_slot)]


def spending_rows(usage: Usage) -> list[tuple[Any, ...]]:
    """What the usage adds to each period."""
    return [(owner, period, nusd) for (owner, period), nusd in sorted(spending_of(usage).items()) if nusd]


def usage_of(rows: Iterable[Sequence[Any]]) -> Usage:
    """The way back."""
    return {Slot(*row[:3]): Sums(**dict(zip(SUM_NAMES, row[3:], strict=True))) for row in rows}


def spent_of(rows: Iterable[Sequence[Any]]) -> Spending:
    """The way back."""
    return {(owner, period): nusd for owner, period, nusd in rows}


def _slot(item: tuple[Slot, Sums]) -> Slot:
    return item[0]
