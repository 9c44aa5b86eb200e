"""The token ledger as a table: one list of columns for the terminal, Markdown and HTML."""

from collections.abc import Callable, Mapping

from withstand.metrics.ledger import Check, Column
from withstand.metrics.summary import StageSummary, Summary
from withstand.record import TokensFrom
from withstand.report.columns import StageColumn, filled
from withstand.report.numbers import UNKNOWN, count, number

CAPTION = "used: whose count tok/s and TPOT rest on · (n): of so many answers · ≠: counts that differ"
_WORDS: Mapping[str, str] = {TokensFrom.SERVER: "server", TokensFrom.TOKENIZER: "text", TokensFrom.CHUNKS: "events"}


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
    StageColumn("used", _used),
    StageColumn("server", _column("server")),
    StageColumn("text", _column("text")),
    StageColumn("events", _column("events")),
    StageColumn("≠", _differences),
    StageColumn("reasoning", _column("reasoning")),
    StageColumn("reasoning events", _column("reasoning_events")),
    StageColumn("prompt", _column("prompt")),
    StageColumn("cached", _column("cached")),
    StageColumn("asked", _column("requested")),
)


def columns_of(summary: Summary) -> list[StageColumn]:
    """Of the ledger; none where no stage has one."""
    return filled(_COLUMNS, summary) if any(stage.ledger for stage in summary.stages) else []
