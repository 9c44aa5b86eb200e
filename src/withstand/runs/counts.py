"""Tokens of answers' texts, counted after their stage: they stand beside the records of an open run, then in them."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from withstand.files import storage_error
from withstand.record import Record, TokensFrom

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[int, int, int]).decode

Counts = dict[tuple[int, int], int]
"""Tokens by (stage, id)."""


def append_counts(path: Path, stage: int, counts: Iterable[tuple[int, int]]) -> None:
    """Write down (id, tokens) of a stage's answers.

    Raises:
        StorageError: the disk is full, or gone.
    """
    try:
        with path.open("ab") as file:
            file.writelines(_encode((stage, answer, tokens)) + b"\n" for answer, tokens in counts)
    except OSError as e:
        raise storage_error(path, e) from None


def read_counts(path: Path, stage: int | None = None) -> Counts:
    """Those of one stage, or all; a line that a crash has cut is none."""
    if not path.exists():
        return {}
    counts: Counts = {}
    with path.open("rb") as file:
        for line in file:
            try:
                of, answer, tokens = _decode(line)
            except msgspec.MsgspecError:
                continue
            if stage is None or of == stage:
                counts[of, answer] = tokens
    return counts


def with_text_tokens(record: Record, tokens: int | None) -> Record:
    """The record, its text counted. Where the server has not counted, this is a better count than that of events."""
    if tokens is None:
        return record
    if tokens and record.tokens_from is not TokensFrom.SERVER:
        return msgspec.structs.replace(
            record, text_tokens=tokens, output_tokens=tokens, tokens_from=TokensFrom.TOKENIZER
        )
    return msgspec.structs.replace(record, text_tokens=tokens)
