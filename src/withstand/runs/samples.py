"""The samples of a run on disk: ``samples.jsonl`` while it is open, ``samples.jsonl.gz`` once it is closed."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from withstand.record import Sample, decode_sample, encode_sample
from withstand.runs.lines import WHOLE, DamagedError, lines_of, pack

OPEN, _CLOSED = "samples.jsonl", "samples.jsonl.gz"
_CLOSED_AS = (_CLOSED, "samples.jsonl.zst")


def read_samples(folder: Path) -> list[Sample]:
    """All of them in the order of time, each once though a crash came while they were gathered.

    What is damaged is left out: no number of a request hangs on it.

    Raises:
        StorageError: a file cannot be read.
    """
    return told_samples(folder)[0]


def told_samples(folder: Path) -> tuple[list[Sample], int]:
    """The same, and how many lines, or ends of files, are damaged.

    Raises:
        StorageError: a file cannot be read.
    """
    damages: list[Path] = []
    paths = [path for name in (*_CLOSED_AS, OPEN) if (path := folder / name).exists()]
    found = {(sample.at_ns, sample.source): sample for path in paths for sample in _samples_of(path, damages)}
    return [found[key] for key in sorted(found)], len(damages)


def _samples_of(path: Path, damages: list[Path]) -> Iterator[Sample]:
    """A last line without its end was cut by a crash, and is no damage."""
    try:
        for line in lines_of(path, WHOLE):
            try:
                yield decode_sample(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                damages += [path] * line.endswith(b"\n")
    except DamagedError:
        damages.append(path)


def close_samples(folder: Path) -> None:
    """Pack what has been appended since the last time.

    Raises:
        StorageError: it cannot be written; what was appended stays.
    """
    if not (folder / OPEN).exists():
        return
    lines = (encode_sample(sample) + b"\n" for sample in read_samples(folder))
    pack(lines, folder / _CLOSED, instead_of=(folder / OPEN,))
