"""``sharegpt``: the first question of real conversations, with the recorded answer's length.

Filtered as vLLM's bench does by default; the real file has every oddity there is, and each is a reason, not a crash.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from withstand.errors import DatasetError
from withstand.request import Message
from withstand.spec import TOKENS_MAX, Workload
from withstand.workload.dataset import Dataset, Session, Turn, read_options
from withstand.workload.datasets.from_file import FromFile
from withstand.workload.files import read_rows
from withstand.workload.seed import Seed
from withstand.workload.tokenizers import Tokenizer

EXPECTED = 'a JSON list of {"conversations": [{"from": …, "value": …}, …]}'
ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "assistant": "assistant",
    "system": "system",
}
Count = Annotated[int, msgspec.Meta(ge=0)]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """vLLM's filter, in tokens."""

    min_len: Count = 4
    """Of prompt and answer each."""
    max_prompt_len: Count = 1024
    max_total_len: Count = 2048
    output_len: Annotated[int, msgspec.Meta(ge=1, le=TOKENS_MAX)] | None = None
    """None = the recorded answer's."""
    questions_only: bool = False
    """Leave out rows that do not begin with a user's message and its answer (vLLM takes them)."""


def open_dataset(workload: Workload, tokenizer: Tokenizer, seed: Seed) -> Dataset:
    """Rows in a seeded order."""
    options = read_options(workload, Options)
    rows = read_conversations(workload.path, "sharegpt")

    def convert(batch: Sequence[msgspec.Raw]) -> list[Session | str]:
        pairs = [_pair(row, options) for row in batch]
        texts = [text for pair in pairs if isinstance(pair, tuple) for text in pair]
        counts = iter(tokenizer.counts(texts))
        return [
            pair if isinstance(pair, str) else _session(pair[0], next(counts), next(counts), options, workload)
            for pair in pairs
        ]

    return FromFile("sharegpt", rows, convert, seed=seed.words)


def read_conversations(path: str | None, dataset: str) -> list[msgspec.Raw]:
    """The rows of a file in ShareGPT's schema.

    Raises:
        DatasetError: it is no list of conversations.
    """
    rows = read_rows(path, dataset, EXPECTED)
    if not any(b'"conversations"' in bytes(row) for row in rows):
        raise DatasetError(f"--dataset-path {path} holds no conversations; {dataset} needs {EXPECTED}.")
    return rows


def messages_of(raw: msgspec.Raw, most: int | None = None) -> list[Message] | str:
    """A row's messages, ``most`` of them, or why it cannot be used."""
    try:
        row = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "not UTF-8 or no JSON"
    said = row.get("conversations") if isinstance(row, dict) else None
    if not isinstance(said, list):
        return "not a conversation"
    messages = []
    for entry in said[:most]:
        if not isinstance(entry, dict) or not isinstance(entry.get("value"), str):
            return "with a message without text"
        role = ROLES.get(str(entry.get("from")).lower())
        if role is None:
            return "with an unknown speaker"
        messages.append(Message(role=role, content=entry["value"]))
    return messages


def _pair(row: msgspec.Raw, options: Options) -> tuple[str, str] | str:
    """(Prompt, answer) that stand first, whoever speaks, as vLLM's bench takes them; or why there are none."""
    messages = messages_of(row, most=2)
    if isinstance(messages, str):
        return messages
    if len(messages) < 2:
        return "with fewer than two messages"
    first, second = messages
    if options.questions_only and (first.role, second.role) != ("user", "assistant"):
        return "not beginning with a question and its answer"
    return first.content or "", second.content or ""


def _session(prompt: str, prompt_len: int, answer_len: int, options: Options, workload: Workload) -> Session | str:
    output_len = options.output_len or answer_len
    if prompt_len < options.min_len or (options.output_len is None and output_len < options.min_len):
        return "too short"
    if prompt_len > options.max_prompt_len or prompt_len + output_len > options.max_total_len:
        return "too long"
    turn = Turn(
        messages=(Message(role="user", content=prompt),),
        prompt_tokens=prompt_len,
        output_tokens=output_len,
        ignore_eos=workload.ignore_eos is True,
    )
    return Session(turns=(turn,))
