"""``mt-bench``: its 80 questions in two turns; the second is asked when the first has been answered."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import msgspec

from withstand.errors import DatasetError
from withstand.request import Message
from withstand.spec import TOKENS_MAX, Workload
from withstand.workload.dataset import Dataset, Session, Turn, read_options
from withstand.workload.datasets.from_file import FromFile
from withstand.workload.files import read_lines
from withstand.workload.seed import Seed
from withstand.workload.tokenizers import Tokenizer

EXPECTED = 'MT-Bench\'s question.jsonl, lines of {"question_id": …, "turns": […, …]}'


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """MT-Bench prescribes no lengths."""

    output_len: Annotated[int, msgspec.Meta(ge=1, le=TOKENS_MAX)] = 256
    turns: Annotated[int, msgspec.Meta(ge=1)] = 2


def open_dataset(workload: Workload, tokenizer: Tokenizer, seed: Seed) -> Dataset:
    """The questions in a seeded order.

    Raises:
        DatasetError: a line holds no turns.
    """
    options = read_options(workload, Options)
    rows: list[list[str]] = []
    for number, row in read_lines(workload.path, "mt-bench", EXPECTED):
        turns = row.get("turns")
        if not isinstance(turns, list) or not turns or not all(isinstance(t, str) for t in turns):
            raise DatasetError(f"--dataset-path {workload.path}, line {number} has no turns; it needs {EXPECTED}.")
        rows.append(turns[: options.turns])

    def convert(batch: Sequence[list[str]]) -> list[Session]:
        counts = iter(tokenizer.counts([text for turns in batch for text in turns]))
        return [Session(turns=tuple(_turn(t, next(counts), workload, options) for t in turns)) for turns in batch]

    return FromFile("mt-bench", rows, convert, seed=seed.words, judged=Counter())


def _turn(text: str, count: int, workload: Workload, options: Options) -> Turn:
    return Turn(
        messages=(Message(role="user", content=text),),
        prompt_tokens=count,
        output_tokens=options.output_len,
        ignore_eos=workload.ignore_eos is True,
    )
