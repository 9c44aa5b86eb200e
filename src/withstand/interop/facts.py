"""Per-request facts of a stranger's file → Records, whose times are whole ns.

Where the file has no instants of sending, each record counts from its own send: its latencies are facts, rates and
concurrency are not to be had from it. It reads no formats; readers hand it rows.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import msgspec

from withstand.interop import values
from withstand.interop.build import RunBuilder
from withstand.interop.shape import Facts
from withstand.record import Record, Status, TokensFrom

NS_PER_S = 1e9
_YEAR_S = 3.2e7
"""No request takes a year: what is larger is another unit, or damage."""
_KINDS = (
    (re.compile(r"\b429\b|too many requests|rate.?limit", re.IGNORECASE), Status.LIMITED),
    (re.compile(r"time.?d? ?out", re.IGNORECASE), Status.TIMEOUT),
    (re.compile(r"cancel", re.IGNORECASE), Status.CANCELLED),
    (re.compile(r"reset|disconnected|broken pipe", re.IGNORECASE), Status.RESET),
    (re.compile(r"too many open files|cannot connect|refused|unreachable", re.IGNORECASE), Status.REFUSED),
)


class Row(msgspec.Struct, kw_only=True):
    """One request as a file tells it, in seconds. ``gaps_s`` None = not told."""

    sent_s: float | None = None
    planned_s: float | None = None
    ttft_s: float | None = None
    e2el_s: float | None = None
    last_token_s: float | None = None
    """From the send; where it is not told, the end stands for it."""
    gaps_s: Sequence[float] | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    tokens_from: TokensFrom | None = None
    error: str | None = None
    status: Status | None = None
    session: int | None = None
    turn: int = 0


def attach(run: RunBuilder, rows: Sequence[Row], *, gaps_known: bool) -> None:
    """The facts of a run; left out, with the reason, when one of them is impossible."""
    if not rows:
        return
    broken = next((i for i, row in enumerate(rows) if not _possible(row)), None)
    if broken is not None:
        run.leave("per-request facts", f"request {broken} has a time that no request can have.")
        return
    starts_known = all(row.sent_s is not None for row in rows)
    epoch_s = min((row.sent_s for row in rows if row.sent_s is not None), default=0.0) if starts_known else 0.0
    if starts_known and any(abs(at - epoch_s) > _YEAR_S for row in rows for at in (row.sent_s, row.planned_s) if at):
        run.leave("per-request facts", "their instants are years apart.")
        return
    good = sum(row.status is Status.OK for row in rows)
    completed = run.numbers.get("completed")
    if completed is not None and completed != good:
        run.leave("per-request facts", f"{good:,} of {len(rows):,} of them are good, but {completed:,.0f} are counted.")
        return
    records = tuple(_record(i, row, epoch_s, starts_known=starts_known) for i, row in enumerate(rows))
    run.facts = Facts(records=records, starts_known=starts_known, gaps_known=gaps_known)


def _possible(row: Row) -> bool:
    times = [row.ttft_s, row.e2el_s, row.last_token_s]
    times += [min(row.gaps_s), sum(row.gaps_s)] if row.gaps_s else []
    return all(t is None or 0 <= t < _YEAR_S for t in times)


def _record(number: int, row: Row, epoch_s: float, *, starts_known: bool) -> Record:
    sent_s = row.sent_s if starts_known and row.sent_s is not None else epoch_s
    sent_ns = _ns(sent_s - epoch_s)
    chunk_ns = [sent_ns + ns for ns in _stamps_ns(row)]
    end_ns = sent_ns + _ns(row.e2el_s) if row.e2el_s is not None else (chunk_ns[-1] if chunk_ns else None)
    return Record(
        id=number,
        stage=0,
        session=row.session,
        turn=row.turn,
        status=row.status or Status.OK,
        scheduled_ns=None if row.planned_s is None or not starts_known else _ns(row.planned_s - epoch_s),
        sent_ns=sent_ns,
        chunk_ns=chunk_ns,
        end_ns=end_ns,
        prompt_tokens=row.prompt_tokens,
        output_tokens=row.output_tokens,
        tokens_from=row.tokens_from,
        error=row.error,
        streamed=row.ttft_s is not None or row.status is not Status.OK,
    )


def _stamps_ns(row: Row) -> list[int]:
    """Of the events, from the send: all of them, or the first and the last."""
    if row.ttft_s is None:
        return []
    if row.gaps_s is not None:
        return [_ns(at) for at in accumulate(row.gaps_s, initial=row.ttft_s)]
    last_s = row.last_token_s if row.last_token_s is not None else row.e2el_s
    one = last_s is None or (row.output_tokens or 0) < 2 or last_s <= row.ttft_s
    return [_ns(row.ttft_s)] if one or last_s is None else [_ns(row.ttft_s), _ns(last_s)]


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)


def status_of(error: str | None) -> Status:
    """The kind of failure that an error's text tells of; a status of the server where it tells of nothing else."""
    if not error:
        return Status.OK
    return next((status for pattern, status in _KINDS if pattern.search(error)), Status.HTTP_ERROR)


def error_line(text: object) -> str | None:
    """The line of an error that says most: of a traceback the last."""
    lines = str(text).strip().splitlines() if text else []
    return lines[-1].strip()[:300] if lines else None


def seconds_list(value: object) -> list[float] | None:
    """A list of times, all of them numbers. Nearly all lists are all floats, and there are many."""
    if not isinstance(value, list):
        return None
    if all(type(item) is float for item in value):
        return value if math.isfinite(sum(value)) else None
    times = [values.number(item) for item in value]
    return None if None in times else [t for t in times if t is not None]


def columns(source: Mapping[str, Any], names: Iterable[str]) -> dict[str, list[Any]] | None:
    """Lists of one length by name; None where one is missing or of another length."""
    found = {name: source.get(name) for name in names}
    lists = {name: value for name, value in found.items() if isinstance(value, list)}
    if len(lists) < len(found) or len({len(value) for value in lists.values()}) != 1:
        return None
    return lists
