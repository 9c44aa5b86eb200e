"""Reading a dataset's file: what is wrong with it is said in one sentence that names the file and the place."""

import codecs
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
    data = _read_bytes(path, dataset, expected)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise DatasetError(
            f"--dataset-path {path} is not UTF-8 at byte {e.start}; {dataset} needs {expected}."
        ) from None


def read_rows(path: str | None, dataset: str, expected: str) -> list[msgspec.Raw]:
    """The rows of a file that is one JSON list. Each is decoded when it is drawn: such files have 700 MB.

    Raises:
        DatasetError: as ``read_text``, or no JSON list; the byte position is told.
    """
    data = _read_bytes(path, dataset, expected)
    try:
        return msgspec.json.decode(data.removeprefix(codecs.BOM_UTF8), type=list[msgspec.Raw])
    except msgspec.ValidationError:
        raise DatasetError(f"--dataset-path {path} is no JSON list; {dataset} needs {expected}.") from None
    except RecursionError:
        raise DatasetError(f"--dataset-path {path} is nested too deeply; {dataset} needs {expected}.") from None
    except msgspec.DecodeError as e:
        read_text(path, dataset, expected)
        place = _position(data, e)
        told = f"--dataset-path {path} is no valid JSON: {_reason(e)} at byte {place}"
        raise DatasetError(told + ("; is it cut off?" if place == len(data) else ".")) from None


def read_lines(path: str | None, dataset: str, expected: str) -> Iterator[tuple[int, Any]]:
    """(Line number, JSON object) of each line that is not blank.

    Raises:
        DatasetError: as ``read_text``, or a line is no JSON object; its number is told.
    """
    for number, line in enumerate(read_text(path, dataset, expected).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line)
        except RecursionError:
            raise DatasetError(f"--dataset-path {path}, line {number} is nested too deeply.") from None
        except msgspec.DecodeError as e:
            column = _position(line.encode(), e) + 1
            raise DatasetError(f"--dataset-path {path}, line {number}, column {column}: {_reason(e)}.") from None
        if not isinstance(row, dict):
            raise DatasetError(f"--dataset-path {path}, line {number} is no JSON object; {dataset} needs {expected}.")
        yield number, row


def _read_bytes(path: str | None, dataset: str, expected: str) -> bytes:
    if path is None:
        raise DatasetError(f"--dataset-name {dataset} needs --dataset-path: {expected}.")
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise DatasetError(f"--dataset-path {path} is no regular file; {dataset} needs {expected}.")
        data = Path(path).read_bytes()
    except OSError as e:
        raise DatasetError(f"--dataset-path {path} cannot be read: {e.strerror}; {dataset} needs {expected}.") from None
    if not data.strip():
        raise DatasetError(f"--dataset-path {path} is empty; {dataset} needs {expected}.")
    return data


def _reason(e: msgspec.DecodeError) -> str:
    return str(e).partition(" (byte")[0].removeprefix("JSON is malformed: ")


def _position(data: bytes, e: msgspec.DecodeError) -> int:
    """Where the decoder gave up; at the end where the input just stops."""
    told = str(e).partition("(byte ")[2].rstrip(")")
    return int(told) if told.isdecimal() else len(data)
