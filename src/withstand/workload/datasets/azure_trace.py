"""``azure-trace``: the lengths and times of a production trace (Azure's LLM traces, BurstGPT) with made-up texts.

With ``arrivals.kind = "trace"`` its own times are played, else only the lengths are used.
"""

import calendar
import csv
import io
import re
from collections.abc import Sequence
from random import Random
from typing import Annotated

import msgspec

from withstand.errors import DatasetError
from withstand.spec import Workload
from withstand.workload.dataset import Dataset, Session, read_options
from withstand.workload.datasets.from_file import FromFile
from withstand.workload.datasets.made_up import one_turn
from withstand.workload.files import read_text
from withstand.workload.tokenizers import Tokenizer
from withstand.workload.wording import Wording

EXPECTED = "a CSV with the columns TIMESTAMP,ContextTokens,GeneratedTokens (or BurstGPT's)"
_COLUMNS = (
    ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    ("Timestamp", "Request tokens", "Response tokens"),
)
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")
Tokens = Annotated[int, msgspec.Meta(ge=1)]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a small engine cannot take is left out, and counted."""

    max_input_len: Tokens | None = None
    max_output_len: Tokens | None = None


class Row(msgspec.Struct, frozen=True):
    """One line; ns since the trace's first."""

    due_ns: int
    input_len: int
    output_len: int


def open_dataset(workload: Workload, tokenizer: Tokenizer, seed: str) -> Dataset:
    """The trace, in its own order.

    Raises:
        DatasetError: no such columns, or a cell that is no number or time.
    """
    options = read_options(workload, Options)
    rows = _rows(read_text(workload.path, "azure-trace", EXPECTED), workload.path)
    words, random = Wording(tokenizer), Random(f"{seed}/texts")
    first_ns = min((row.due_ns for row in rows), default=0)

    def convert(batch: Sequence[Row]) -> list[Session | str]:
        reasons = [left_out(r.input_len, r.output_len, options.max_input_len, options.max_output_len) for r in batch]
        texts = iter(words.texts(random, [row.input_len for row, why in zip(batch, reasons, strict=True) if not why]))
        return [
            why or timed_session(row, next(texts), first_ns, ignore_eos=workload.ignore_eos is not False)
            for row, why in zip(batch, reasons, strict=True)
        ]

    return FromFile("azure-trace", sorted(rows, key=lambda row: row.due_ns), convert, seed=None, timed=True)


def left_out(input_len: int, output_len: int, most_in: int | None, most_out: int | None) -> str | None:
    """Why a row of a trace is not played."""
    if input_len < 1 or output_len < 1:
        return "without tokens (failed requests)"
    if (most_in and input_len > most_in) or (most_out and output_len > most_out):
        return "longer than the limit"
    return None


def timed_session(row: Row, text: str, first_ns: int, *, ignore_eos: bool) -> Session:
    """A request at its time since the trace's first."""
    session = one_turn(text, row.input_len, row.output_len, ignore_eos=ignore_eos)
    return msgspec.structs.replace(session, due_ns=row.due_ns - first_ns)


def _rows(text: str, path: str | None) -> list[Row]:
    reader = csv.DictReader(io.StringIO(text))
    names = next((c for c in _COLUMNS if set(c) <= set(reader.fieldnames or ())), None)
    if names is None:
        raise DatasetError(f"--dataset-path {path} has not the right columns; azure-trace needs {EXPECTED}.")
    rows = []
    for line in reader:
        when, tokens_in, tokens_out = (line[name] or "" for name in names)
        due_ns = _time_ns(when)
        if due_ns is None or not (tokens_in.isdecimal() and tokens_out.isdecimal()):
            raise DatasetError(f"--dataset-path {path}, line {reader.line_num} holds no time or no whole numbers.")
        rows.append(Row(due_ns, int(tokens_in), int(tokens_out)))
    if not rows:
        raise DatasetError(f"--dataset-path {path} holds no requests.")
    return rows


def _time_ns(text: str) -> int | None:
    """A date with up to nine decimals, or seconds."""
    if match := _DATE.match(text):
        *date, decimals = match.groups()
        second = calendar.timegm(tuple(int(part) for part in date))
        return second * 1_000_000_000 + int((decimals or "0").ljust(9, "0"))
    try:
        return round(float(text) * 1e9)
    except ValueError:
        return None
