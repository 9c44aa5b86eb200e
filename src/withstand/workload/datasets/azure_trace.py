"""``azure-trace``: the lengths and times of a production trace (Azure's LLM traces, BurstGPT) with made-up texts."""

import calendar
import csv
import io
import re
from collections.abc import Sequence
from random import Random

from withstand.errors import DatasetError
from withstand.spec import Workload
from withstand.workload.dataset import Dataset, read_options
from withstand.workload.datasets.trace import Limits, Row, replayed
from withstand.workload.files import read_text
from withstand.workload.seed import Seed
from withstand.workload.tokenizers import Tokenizer
from withstand.workload.wording import Wording

EXPECTED = "a CSV with the columns TIMESTAMP,ContextTokens,GeneratedTokens (or BurstGPT's)"
_COLUMNS = (
    ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    ("Timestamp", "Request tokens", "Response tokens"),
)
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")


def open_dataset(workload: Workload, tokenizer: Tokenizer, seed: Seed) -> Dataset:
    """The trace, in its own order.

    Raises:
        DatasetError: no such columns, or a cell that is no number or time.
    """
    limits = read_options(workload, Limits)
    rows = _rows(read_text(workload.path, "azure-trace", EXPECTED), workload.path)
    words, random = Wording(tokenizer), Random(f"{seed.words}/texts")

    def write(batch: Sequence[Row]) -> list[str]:
        return words.texts(random, [row.input_len for row in batch])

    return replayed("azure-trace", rows, limits, write, ignore_eos=workload.ignore_eos is not False)


def _rows(text: str, path: str | None) -> list[Row]:
    reader = csv.DictReader(io.StringIO(text))
    try:
        names = next((c for c in _COLUMNS if set(c) <= set(reader.fieldnames or ())), None)
        if names is None:
            raise DatasetError(f"--dataset-path {path} has not the right columns; azure-trace needs {EXPECTED}.")
        rows = [_row([line[name] or "" for name in names], reader.line_num, path) for line in reader]
    except csv.Error as e:
        raise DatasetError(f"--dataset-path {path}, line {reader.line_num + 1} is no CSV: {e}.") from None
    if not rows:
        raise DatasetError(f"--dataset-path {path} holds no requests; azure-trace needs {EXPECTED}.")
    return rows


def _row(cells: Sequence[str], number: int, path: str | None) -> Row:
    try:
        return Row(_time_ns(cells[0]), int(cells[1]), int(cells[2]))
    except (ValueError, OverflowError):
        raise DatasetError(f"--dataset-path {path}, line {number} holds no time or no whole numbers.") from None


def _time_ns(text: str) -> int:
    """A date with up to nine decimals, or seconds.

    Raises:
        ValueError: neither.
        OverflowError: not finite.
    """
    match = _DATE.match(text)
    if match is None:
        return round(float(text) * 1e9)
    *date, decimals = match.groups()
    second = calendar.timegm(tuple(int(part) for part in date))
    return second * 1_000_000_000 + int((decimals or "0").ljust(9, "0"))
