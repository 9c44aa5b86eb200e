"""``agent``: tasks with known answers, for agents with tools.

Without a path the tasks that come along: arithmetic, and questions about an island that does not exist, which the
agent's own corpus tells of, so that no model knows the answers by heart.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
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

EXPECTED = 'lines of {"question": …, "answers": […]}, where any of the answers is right'
_OURS = Path(__file__).with_name("agent_tasks.jsonl")


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``kinds`` empty = all; ``output_len`` is the most tokens of a call, None = the agent's own limit."""

    kinds: str | tuple[str, ...] = ()
    output_len: Annotated[int, msgspec.Meta(ge=1, le=TOKENS_MAX)] | None = None
    shuffle: bool = True


class Task(msgspec.Struct, frozen=True):
    """One line."""

    question: str
    answers: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    kind: str = ""


def open_dataset(workload: Workload, tokenizer: Tokenizer, seed: Seed) -> Dataset:
    """The tasks in a seeded order, each a session of its own.

    Raises:
        DatasetError: a line is no task; its number is told.
    """
    options = read_options(workload, Options)
    tasks = read_tasks(workload.path)
    kinds = (options.kinds,) if isinstance(options.kinds, str) else options.kinds
    wanted = [task for task in tasks if not kinds or task.kind in kinds]
    if not wanted:
        known = ", ".join(sorted({task.kind for task in tasks}))
        raise DatasetError(f"workload.options.kinds: there is no task of these; there are {known}.")

    def convert(batch: Sequence[Task]) -> list[Session]:
        counts = tokenizer.counts([task.question for task in batch])
        return [Session(turns=(_turn(t, n, options),)) for t, n in zip(batch, counts, strict=True)]

    return FromFile("agent", wanted, convert, seed=seed.work if options.shuffle else None, judged=Counter())


def read_tasks(path: str | None) -> list[Task]:
    """Those of a file; None = ours.

    Raises:
        DatasetError: a line is no task.
    """
    tasks = []
    for number, row in read_lines(path or str(_OURS), "agent", EXPECTED):
        try:
            tasks.append(msgspec.convert(row, Task))
        except msgspec.ValidationError as e:
            raise DatasetError(f"--dataset-path {path}, line {number}: {e}; agent needs {EXPECTED}.") from None
    return tasks


def _turn(task: Task, tokens: int, options: Options) -> Turn:
    return Turn(
        messages=(Message(role="user", content=task.question),),
        prompt_tokens=tokens,
        output_tokens=options.output_len,
        expected=task.answers,
    )
