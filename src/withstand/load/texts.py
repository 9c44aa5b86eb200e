"""The texts of answers on their way to whoever counts their tokens: a file of JSON lines a worker, for one stage.

Which answers are written is drawn by their ids: the same ones in every run of the same plan, by any worker.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from withstand.files import storage_error

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[int, str]).decode


def text_path(folder: Path, worker: int) -> Path:
    """Where a worker writes them."""
    return folder / f"texts.w{worker}.jsonl"


def place_of(answer: int) -> float:
    """Where an id stands in the draw: evenly spread over 0 … 1."""
    return zlib.crc32(answer.to_bytes(8, "little")) / 2**32


class TextSink:
    """Takes the texts of a share of all answers."""

    def __init__(self, path: Path, share: float) -> None:
        self._path = path
        self._share = share
        try:
            self._file = path.open("wb", buffering=1 << 16)
        except OSError as e:
            raise storage_error(path, e) from None

    def wants(self, answer: int) -> bool:
        """Whether the text of this one shall be kept."""
        return place_of(answer) < self._share

    def append(self, answer: int, text: str) -> None:
        """One answer.

        Raises:
            StorageError: the disk is full.
        """
        try:
            self._file.write(_encode((answer, text)) + b"\n")
        except OSError as e:
            raise storage_error(self._path, e) from None

    def write(self, lines: bytes) -> None:
        """Whole lines that a worker elsewhere has written; they are on file at once.

        Raises:
            StorageError: the disk is full.
        """
        try:
            self._file.write(lines)
            self._file.flush()
        except OSError as e:
            raise storage_error(self._path, e) from None

    def close(self) -> None:
        """Let a reader see all of it.

        Raises:
            StorageError: the disk is full.
        """
        try:
            self._file.close()
        except OSError as e:
            raise storage_error(self._path, e) from None


def read_texts(folder: Path) -> Iterator[tuple[int, str]]:
    """(id, text) of every answer of the stage; a line that a worker's death has cut is none."""
    for path in sorted(folder.glob("texts.w*.jsonl")):
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield _decode(line)
