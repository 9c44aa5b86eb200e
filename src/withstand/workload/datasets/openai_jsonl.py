"""``openai-jsonl``: requests as they were, one JSON object a line.

``{"messages": […]}`` or ``{"prompt": …}``, with any further fields of the body; or lines of OpenAI's batch files, whose
``body`` is that. The fields go out as they stand, but for those that withstand sets itself.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec

from withstand.errors import DatasetError
from withstand.request import Message
from withstand.spec import TOKENS_MAX, Workload
from withstand.workload.dataset import Dataset, Session, Turn, read_options
from withstand.workload.datasets.from_file import FromFile
from withstand.workload.files import read_lines
from withstand.workload.seed import Seed
from withstand.workload.tokenizers import Tokenizer

EXPECTED = 'lines of {"messages": [{"role": …, "content": …}]} or {"prompt": …}'
_LENGTHS = ("max_completion_tokens", "max_tokens")
Tokens = Annotated[int, msgspec.Meta(ge=1, le=TOKENS_MAX)]
_OURS = frozenset({"messages", "prompt", "model", "stream", "stream_options", *_LENGTHS})


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``output_len`` wins over the lines' own lengths; ``shuffle`` false keeps the file's order."""

    output_len: Tokens | None = None
    shuffle: bool = True


def open_dataset(workload: Workload, tokenizer: Tokenizer, seed: Seed) -> Dataset:
    """The file's requests.

    Raises:
        DatasetError: a line is no request; its number is told.
    """
    options = read_options(workload, Options)
    lines = read_lines(workload.path, "openai-jsonl", EXPECTED)
    turns = [_turn(row, number, workload, options) for number, row in lines]

    def convert(batch: Sequence[Turn]) -> list[Session]:
        counts = iter(tokenizer.counts([text for turn in batch if (text := _text(turn)) is not None]))
        return [Session(turns=(_counted(turn, counts),)) for turn in batch]

    return FromFile("openai-jsonl", turns, convert, seed=seed.words if options.shuffle else None, judged=Counter())


def _counted(turn: Turn, counts: Iterator[int]) -> Turn:
    return turn if _text(turn) is None else msgspec.structs.replace(turn, prompt_tokens=next(counts))


def _text(turn: Turn) -> str | None:
    """All that is said; None where some of it is no plain text, whose tokens only the engine knows."""
    contents = [message.content for message in turn.messages if message.content is not None]
    return "\n".join(contents) if len(contents) == len(turn.messages) else None


def _turn(row: dict[str, Any], number: int, workload: Workload, options: Options) -> Turn:
    body = row["body"] if isinstance(row.get("body"), dict) else row
    return Turn(
        messages=_messages(body, number, workload.path),
        output_tokens=options.output_len or _length(body, number, workload.path),
        ignore_eos=workload.ignore_eos is True,
        extra_body={k: raw(v) for k, v in body.items() if k not in _OURS and not _is_label(k, body is row)},
    )


def _length(body: dict[str, Any], number: int, path: str | None) -> int | None:
    name = next((name for name in _LENGTHS if body.get(name) is not None), None)
    if name is None:
        return None
    try:
        return msgspec.convert(body[name], Tokens)
    except msgspec.ValidationError as e:
        raise DatasetError(f"--dataset-path {path}, line {number}, {name}: {e}.") from None


def _is_label(key: str, bare: bool) -> bool:
    """Names that lines carry for people and not for an API."""
    return bare and key in {"id", "custom_id", "subset", "category", "method", "url"}


def _messages(body: dict[str, Any], number: int, path: str | None) -> tuple[Message, ...]:
    if isinstance(body.get("prompt"), str):
        return (Message(role="user", content=body["prompt"]),)
    messages = messages_in(body.get("messages"))
    if not messages:
        raise DatasetError(f"--dataset-path {path}, line {number} has no messages and no prompt; it needs {EXPECTED}.")
    return messages


def messages_in(rows: Any) -> tuple[Message, ...]:
    """A list of messages; empty where it is none."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "role" in row for row in rows):
        return ()
    return tuple(_message(row) for row in rows)


def _message(row: dict[str, Any]) -> Message:
    """A message whose content is a text, or whose parts are passed on as they are."""
    content = row.get("content")
    is_text = content is None or isinstance(content, str)
    hidden = {"role", "content"} if is_text else {"role"}
    extra = {k: raw(v) for k, v in row.items() if k not in hidden and v is not None}
    return Message(role=str(row["role"]), content=content if is_text else None, extra=extra)


def raw(value: Any) -> msgspec.Raw:
    """A value as the JSON that it is."""
    return msgspec.Raw(msgspec.json.encode(value))
