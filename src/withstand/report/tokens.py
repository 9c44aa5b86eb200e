"""The token ledger as a table: one list of columns for the terminal, Markdown and HTML."""

from collections.abc import Callable

import msgspec

from withstand.metrics.ledger import Check, Column
from withstand.metrics.summary import StageSummary
from withstand.record import TokensFrom
from withstand.report.numbers import UNKNOWN, count, number

CAPTION = "used: whose count tok/s and TPOT rest on · (n): of so many answers · ≠: counts that differ"
_WORDS = {TokensFrom.SERVER: "server", TokensFrom.TOKENIZER: "text", TokensFrom.CHUNKS: "events"}


class LedgerColumn(msgspec.Struct, frozen=True):
    """A heading, and what stands in a stage's row."""

    heading: str
    cell: Callable[[StageSummary], str]


def tells(stage: StageSummary) -> bool:
    """Whether the ledger has something to say: counts that disagree, or that are not the server's."""
    estimated = any(kind != TokensFrom.SERVER for kind in stage.tokens_from)
    return bool(stage.ledger) and (estimated or bool(stage.ledger and stage.ledger.disagreements))


def _used(stage: StageSummary) -> str:
    """``server``, or where several were: ``server 380 + events 20``."""
    named = [(_WORDS[TokensFrom(kind)], n) for kind, n in stage.tokens_from.items()]
    if len(named) == 1:
        return named[0][0]
    return " + ".join(f"{name} {count(n)}" for name, n in named) or UNKNOWN


def _column(name: str) -> Callable[[StageSummary], str]:
    def cell(stage: StageSummary) -> str:
        column: Column = getattr(stage.ledger, name) if stage.ledger else Column()
        if not column.answers:
            return UNKNOWN
        return count(column.tokens) + ("" if column.answers == stage.completed else f" ({count(column.answers)})")

    return cell


def _differences(stage: StageSummary) -> str:
    checks = stage.ledger.disagreements if stage.ledger else ()
    return " · ".join(map(_difference, checks)) or UNKNOWN


def _difference(check: Check) -> str:
    """``server 5.00 x events``."""
    return f"{check.left} {number(check.ratio)} x {check.right}" if check.ratio is not None else f"no {check.right}"


COLUMNS = (
    LedgerColumn("used", _used),
    LedgerColumn("server", _column("server")),
    LedgerColumn("text", _column("text")),
    LedgerColumn("events", _column("events")),
    LedgerColumn("reasoning", _column("reasoning")),
    LedgerColumn("reasoning events", _column("reasoning_events")),
    LedgerColumn("prompt", _column("prompt")),
    LedgerColumn("cached", _column("cached")),
    LedgerColumn("asked", _column("requested")),
    LedgerColumn("≠", _differences),
)
