"""The token ledger as a table: one list of columns for the terminal, Markdown and HTML."""

from collections.abc import Callable, Mapping

import msgspec

from withstand.metrics.ledger import Check, Column
from withstand.metrics.summary import StageSummary, Summary
from withstand.record import TokensFrom
from withstand.report.numbers import UNKNOWN, count, number

CAPTION = "used: whose count tok/s and TPOT rest on · (n): of so many answers · ≠: counts that differ"
_WORDS: Mapping[str, str] = {TokensFrom.SERVER: "server", TokensFrom.TOKENIZER: "text", TokensFrom.CHUNKS: "events"}


class LedgerColumn(msgspec.Struct, frozen=True):
    """A heading, and what stands in a stage's row."""

    heading: str
    cell: Callable[[StageSummary], str]


def tells(stage: StageSummary) -> bool:
    """Whether the ledger has something to say: counts that disagree, or that are not the server's."""
    if stage.ledger is None:
        return False
    return bool(stage.ledger.disagreements) or any(kind != TokensFrom.SERVER for kind in stage.tokens_from)


def _used(stage: StageSummary) -> str:
    """``server``, or where several were: ``server 380 + events 20``."""
    named = [(_WORDS.get(kind, kind), n) for kind, n in stage.tokens_from.items()]
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


_COLUMNS = (
    LedgerColumn("used", _used),
    LedgerColumn("server", _column("server")),
    LedgerColumn("text", _column("text")),
    LedgerColumn("events", _column("events")),
    LedgerColumn("≠", _differences),
    LedgerColumn("reasoning", _column("reasoning")),
    LedgerColumn("reasoning events", _column("reasoning_events")),
    LedgerColumn("prompt", _column("prompt")),
    LedgerColumn("cached", _column("cached")),
    LedgerColumn("asked", _column("requested")),
)


def columns_of(summary: Summary) -> list[LedgerColumn]:
    """Those in which any stage has something."""
    return [c for c in _COLUMNS if any(c.cell(stage) != UNKNOWN for stage in summary.stages)]
