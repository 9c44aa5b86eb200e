"""``mooncake-trace``: a trace whose ``hash_ids`` name the blocks of each prompt; equal ids become really equal texts.

So an engine's prefix cache sees what it saw in production. Mooncake's blocks have 512 tokens and its times are ms;
Qwen-Bailian's files (``chat_id``, blocks of 16, times in s) are read too.
"""

from collections.abc import Sequence
from functools import lru_cache
from random import Random
from typing import Any

from withstand.errors import DatasetError
from withstand.spec import Workload
from withstand.workload.dataset import Dataset, read_options
from withstand.workload.datasets.trace import Limits, Row, Tokens, replayed
from withstand.workload.files import read_lines
from withstand.workload.seed import Seed
from withstand.workload.tokenizers import Tokenizer
from withstand.workload.wording import Wording

EXPECTED = 'lines of {"timestamp": ms, "input_length": …, "output_length": …, "hash_ids": […]}'
_BLOCKS_KEPT = 4096


class Options(Limits, frozen=True, forbid_unknown_fields=True):
    """``block_size`` None = as the format has it."""

    block_size: Tokens | None = None


class Blocks(Row, frozen=True):
    """One line, with the blocks of its prompt."""

    hash_ids: tuple[int, ...] = ()


def open_dataset(workload: Workload, tokenizer: Tokenizer, seed: Seed) -> Dataset:
    """The trace, in its own order.

    Raises:
        DatasetError: a line lacks a field.
    """
    options = read_options(workload, Options)
    lines = list(read_lines(workload.path, "mooncake-trace", EXPECTED))
    is_bailian = bool(lines) and "chat_id" in lines[0][1]
    rows = [_row(row, number, workload.path, 1e9 if is_bailian else 1e6) for number, row in lines]
    writer = _Writer(Wording(tokenizer), options.block_size or (16 if is_bailian else 512), seed.common)
    return replayed("mooncake-trace", rows, options, writer.write, ignore_eos=workload.ignore_eos is not False)


def _row(row: dict[str, Any], number: int, path: str | None, unit_ns: float) -> Blocks:
    try:
        return Blocks(
            due_ns=round(row["timestamp"] * unit_ns),
            input_len=int(row["input_length"]),
            output_len=int(row["output_length"]),
            hash_ids=tuple(int(i) for i in row["hash_ids"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as e:
        what = f"lacks {e}" if isinstance(e, KeyError) else f"holds a wrong value ({e})"
        raise DatasetError(f"--dataset-path {path}, line {number} {what}; mooncake-trace needs {EXPECTED}.") from None


class _Writer:
    """Turns block ids into texts. The blocks of all stages of a run are the same: that is what they are for."""

    def __init__(self, words: Wording, block_size: int, seed: str) -> None:
        self._words = words
        self._block_size = block_size
        self._seed = seed
        self._block = lru_cache(maxsize=_BLOCKS_KEPT)(
            lambda block_id: words.chunk(Random(f"{seed}/block/{block_id}"), block_size)
        )

    def write(self, rows: Sequence[Blocks]) -> list[str]:
        """A text for each; only its end is mended, so that shared beginnings stay shared."""
        return self._words.mended([self._text(row) for row in rows], [row.input_len for row in rows])

    def _text(self, row: Blocks) -> str:
        """Whole blocks, and of the next one as much as is wanted: what has no id is this row's own."""
        whole, rest_len = divmod(row.input_len, self._block_size)
        missing = max(0, whole - len(row.hash_ids))
        text = "".join(map(self._block, row.hash_ids[:whole]))
        if missing or whole == len(row.hash_ids):
            own = Random(f"{self._seed}/rest/{row.hash_ids}/{row.due_ns}")
            return (text + self._words.rough(own, missing * self._block_size + rest_len)).lstrip()
        return (text + self._begun(row.hash_ids[whole], rest_len)).lstrip()

    def _begun(self, block_id: int, tokens: int) -> str:
        """The beginning of a block, or about that: the text's end is mended anyway."""
        words = self._block(block_id).split(" ")
        return " ".join(words[: 1 + round((len(words) - 1) * tokens / self._block_size)])
