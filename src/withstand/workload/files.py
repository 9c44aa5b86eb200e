"""Reading a dataset's file: what is wrong with it is said in one sentence that names the file and the place."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from withstand.errors import DatasetError


def read_text(path: str | None, dataset: str, expected: str) -> str:
    """The file's text.

    Raises:
        DatasetError: no path, no such file, no right to read it, not UTF-8, empty.
    """
    if path is None:
        raise DatasetError(f"--dataset-name {dataset} needs --dataset-path: {expected}.")
    try:
        data = Path(path).read_bytes()
    except OSError as e:
        raise DatasetError(f"--dataset-path {path} cannot be read: {e.strerror}; {dataset} needs {expected}.") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise DatasetError(
            f"--dataset-path {path} is not UTF-8 at byte {e.start}; {dataset} needs {expected}."
        ) from None
    if not text.strip():
        raise DatasetError(f"--dataset-path {path} is empty; {dataset} needs {expected}.")
    return text


def read_json(path: str | None, dataset: str, expected: str) -> Any:
    """The file as one JSON value.

    Raises:
        DatasetError: as ``read_text``, or no JSON; the byte position is told.
    """
    text = read_text(path, dataset, expected)
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as e:
        place = _position(text, e)
        raise DatasetError(
            f"--dataset-path {path} is no valid JSON: {_reason(e)} at byte {place}; is it cut off?"
        ) from None


def read_lines(path: str | None, dataset: str, expected: str) -> Iterator[tuple[int, Any]]:
    """(Line number, JSON object) of each line that is not blank.

    Raises:
        DatasetError: as ``read_text``, or a line is no JSON object; its number is told.
    """
    for number, line in enumerate(read_text(path, dataset, expected).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line)
        except msgspec.DecodeError as e:
            column = _position(line, e) + 1
            raise DatasetError(f"--dataset-path {path}, line {number}, column {column}: {_reason(e)}.") from None
        if not isinstance(row, dict):
            raise DatasetError(f"--dataset-path {path}, line {number} is no JSON object; {dataset} needs {expected}.")
        yield number, row


def _reason(e: msgspec.DecodeError) -> str:
    return str(e).partition(" (byte")[0].removeprefix("JSON is malformed: ")


def _position(text: str, e: msgspec.DecodeError) -> int:
    """Where the decoder gave up; at the end where the input just stops."""
    told = str(e).partition("(byte ")[2].rstrip(")")
    return int(told) if told.isdecimal() else len(text.encode())
