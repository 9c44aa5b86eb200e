"""``mooncake-trace``: a trace whose ``hash_ids`` name the blocks of each prompt; equal ids become really equal texts.

So an engine's prefix cache sees what it saw in production. Mooncake's blocks have 512 tokens and its times are ms;
Qwen-Bailian's files (``chat_id``, blocks of 16, times in s) are read too.
"""

from collections.abc import Sequence
from functools import lru_cache
from random import Random
from typing import Annotated, Any

import msgspec

from withstand.errors import DatasetError
from withstand.spec import Workload
from withstand.workload.dataset import Dataset, Session, read_options
from withstand.workload.datasets.azure_trace import Row, left_out, timed_session
from withstand.workload.datasets.from_file import FromFile
from withstand.workload.files import read_lines
from withstand.workload.tokenizers import Tokenizer
from withstand.workload.wording import Wording

EXPECTED = 'lines of {"timestamp": ms, "input_length": …, "output_length": …, "hash_ids": […]}'
_BLOCKS_KEPT = 4096
Tokens = Annotated[int, msgspec.Meta(ge=1)]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a small engine cannot take is left out, and counted. ``block_size`` None = as the format has it."""

    max_input_len: Tokens | None = None
    max_output_len: Tokens | None = None
    block_size: Tokens | None = None


class Blocks(Row, frozen=True):
    """One line, with the blocks of its prompt."""

    hash_ids: tuple[int, ...] = ()


def open_dataset(workload: Workload, tokenizer: Tokenizer, seed: str) -> Dataset:
    """The trace, in its own order.

    Raises:
        DatasetError: a line lacks a field.
    """
    options = read_options(workload, Options)
    lines = list(read_lines(workload.path, "mooncake-trace", EXPECTED))
    is_bailian = bool(lines) and "chat_id" in lines[0][1]
    rows = [_row(row, number, workload.path, 1e9 if is_bailian else 1e6) for number, row in lines]
    writer = _Writer(Wording(tokenizer), options.block_size or (16 if is_bailian else 512), seed.partition("/")[0])
    first_ns = min((row.due_ns for row in rows), default=0)

    def convert(batch: Sequence[Blocks]) -> list[Session | str]:
        reasons = [left_out(r.input_len, r.output_len, options.max_input_len, options.max_output_len) for r in batch]
        texts = iter(writer.write([row for row, why in zip(batch, reasons, strict=True) if not why]))
        return [
            why or timed_session(row, next(texts), first_ns, ignore_eos=workload.ignore_eos is not False)
            for row, why in zip(batch, reasons, strict=True)
        ]

    return FromFile("mooncake-trace", sorted(rows, key=lambda row: row.due_ns), convert, seed=None, timed=True)


def _row(row: dict[str, Any], number: int, path: str | None, unit_ns: float) -> Blocks:
    try:
        return Blocks(
            due_ns=round(row["timestamp"] * unit_ns),
            input_len=int(row["input_length"]),
            output_len=int(row["output_length"]),
            hash_ids=tuple(int(i) for i in row["hash_ids"]),
        )
    except (KeyError, TypeError, ValueError) as e:
        what = f"lacks {e}" if isinstance(e, KeyError) else f"holds a wrong value ({e})"
        raise DatasetError(f"--dataset-path {path}, line {number} {what}; mooncake-trace needs {EXPECTED}.") from None


class _Writer:
    """Turns block ids into texts. The blocks of all stages of a run are the same: that is what they are for."""

    def __init__(self, words: Wording, block_size: int, seed: str) -> None:
        self._words = words
        self._block_size = block_size
        self._block = lru_cache(maxsize=_BLOCKS_KEPT)(
            lambda block_id: words.rough(Random(f"{seed}/block/{block_id}"), block_size)
        )

    def write(self, rows: Sequence[Blocks]) -> list[str]:
        """A text for each; only its end is mended, so that shared beginnings stay shared."""
        texts = ["".join(self._block(i) for i in row.hash_ids).lstrip() for row in rows]
        return self._words.mended([self._cut(text, row) for text, row in zip(texts, rows, strict=True)], _lengths(rows))

    def _cut(self, text: str, row: Blocks) -> str:
        """The last block is only begun: drop about what is too much."""
        excess = len(row.hash_ids) * self._block_size - row.input_len
        return text if excess <= 0 else " ".join(text.split(" ")[:-excess])


def _lengths(rows: Sequence[Blocks]) -> list[int]:
    return [row.input_len for row in rows]
