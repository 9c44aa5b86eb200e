"""What replayed traces share: rows of lengths and times, limits, and sessions of made-up texts.

With ``arrivals.kind = "trace"`` the file's own times are played, else only the lengths are used.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, TypeVar

import msgspec

from withstand.workload.dataset import Dataset, Session
from withstand.workload.datasets.from_file import FromFile
from withstand.workload.datasets.made_up import one_turn

Tokens = Annotated[int, msgspec.Meta(ge=1)]


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a small engine cannot take is left out, and counted."""

    max_input_len: Tokens | None = None
    max_output_len: Tokens | None = None


class Row(msgspec.Struct, frozen=True):
    """One request of a trace; its time counts from wherever the file's times do."""

    due_ns: int
    input_len: int
    output_len: int


RowT = TypeVar("RowT", bound=Row)


def replayed(
    name: str,
    rows: Iterable[RowT],
    limits: Limits,
    write: Callable[[Sequence[RowT]], list[str]],
    *,
    ignore_eos: bool,
) -> Dataset:
    """The rows that can be played, in the order of their times, which begin at 0. ``write`` makes their texts."""
    left_out: Counter[str] = Counter()
    kept: list[RowT] = []
    for row in sorted(rows, key=lambda row: row.due_ns):
        if reason := _left_out(row, limits):
            left_out[reason] += 1
        else:
            kept.append(row)
    first_ns = kept[0].due_ns if kept else 0

    def convert(batch: Sequence[RowT]) -> list[Session]:
        return [
            _session(row, text, first_ns, ignore_eos=ignore_eos) for row, text in zip(batch, write(batch), strict=True)
        ]

    return FromFile(name, kept, convert, timed=True, judged=left_out)


def _session(row: Row, text: str, first_ns: int, *, ignore_eos: bool) -> Session:
    session = one_turn(text, row.input_len, row.output_len, ignore_eos=ignore_eos)
    return msgspec.structs.replace(session, due_ns=row.due_ns - first_ns)


def _left_out(row: Row, limits: Limits) -> str | None:
    """Why a row is not played."""
    if row.input_len < 1 or row.output_len < 1:
        return "without tokens (failed requests)"
    if row.input_len > (limits.max_input_len or row.input_len):
        return "longer than max_input_len"
    if row.output_len > (limits.max_output_len or row.output_len):
        return "longer than max_output_len"
    return None
