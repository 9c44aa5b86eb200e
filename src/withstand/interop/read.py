"""Files and folders → runs. The only place of this package that touches the disk.

A folder is searched whole: a sweep, or all that one tool wrote of one run. A run that stands in several of its files
counts once. What is no result is passed over in a folder; given by itself it is refused, with the reason.
"""

import os
import stat
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from withstand.errors import FormatError
from withstand.files import folders_below, is_there, spelled
from withstand.interop import aiperf, genai_bench, values
from withstand.interop.derive import complete
from withstand.interop.documents import whole
from withstand.interop.once import without_twins
from withstand.interop.registry import TOOLS, find_runs
from withstand.interop.shape import Imported, ImportedRun, Refused
from withstand.interop.source import Place

_BYTES_MAX = 2 << 30
_FILES_MAX = 10_000
_DESCRIPTION_MAX = 1_000_000
_SUFFIXES = frozenset(
    {".json", ".jsonl", ".ndjson", ".csv", ".txt", ".log", ".md", ".yaml", ".yml", ".gz", ".out", ".stdout", ""}
)
_GZIP = b"\x1f\x8b"
_GZIP_BITS = 31


def read_path(path: Path, without: Collection[Path] = ()) -> Imported:
    """A file, or all results of a folder but for some folders in it.

    Raises:
        FormatError: it cannot be read, or holds no result; the text says why.
    """
    if is_there(path) and path.is_dir():
        found = read_folder(path, without)
        if not found.runs:
            raise FormatError(_why_nothing(str(path), "folder", found.refused))
        return found
    return read_text(_text(path), spelled(path.name), str(path))


def read_text(text: str, name: str, shown: str | None = None) -> Imported:
    """The runs of one text.

    Raises:
        FormatError: it holds none.
    """
    runs, refused = find_runs(text, Place(name))
    if not runs:
        raise FormatError(_why_nothing(shown or name, text, refused))
    return Imported(runs=tuple(without_twins([complete(run) for run in runs])), refused=tuple(refused))


def _why_nothing(shown: str, text: str, refused: Sequence[Refused]) -> str:
    if refused:
        first = refused[0]
        where = f" ({first.position})" if first.position else ""
        more = f" {len(refused) - 1} more in it are none either." if len(refused) > 1 else ""
        return f"{shown} is no result{where}: {values.plain(first.reason)}{more}"
    if not text.strip():
        return f"{shown} is empty."
    return f"{shown} is no run folder, and holds no result of another tool that is known here: {TOOLS}."


def _text(path: Path) -> str:
    data = _bytes(path)
    for encoding in _encodings(data):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError as e:
            at = e.start
    raise FormatError(f"{path} is no text at byte {at}, so it is no result file; a compressed one must be .gz.")


def _encodings(data: bytes) -> tuple[str, ...]:
    return ("utf-16",) if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else ("utf-8-sig",)


def _bytes(path: Path) -> bytes:
    try:
        with open(path, "rb", opener=_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise FormatError(f"{path} is a device, pipe or socket; save what it gives, and name that file.")
            if status.st_size > _BYTES_MAX:
                raise FormatError(
                    f"{path} is larger than {_BYTES_MAX >> 30} GiB; give the summary instead of the records."
                )
            data = file.read(_BYTES_MAX) or b""
        return _unpacked(path, data) if data.startswith(_GZIP) else data
    except OSError as e:
        raise FormatError(f"{path} cannot be read: {e.strerror or e}.") from None


def _at_once(path: str, flags: int) -> int:
    """A pipe that nobody writes to is opened too."""
    return os.open(path, flags | os.O_NONBLOCK)


def _unpacked(path: Path, data: bytes) -> bytes:
    """All members of a gzip, and no further than the limit: a few bytes can unpack to all memory."""
    unpacked = bytearray()
    while data:
        unpacker = zlib.decompressobj(wbits=_GZIP_BITS)
        try:
            unpacked += unpacker.decompress(data, _BYTES_MAX - len(unpacked) + 1)
        except zlib.error:
            raise FormatError(f"{path} is compressed, and damaged.") from None
        if len(unpacked) > _BYTES_MAX:
            raise FormatError(f"{path} unpacks to more than {_BYTES_MAX >> 30} GiB; give the summary.")
        if not unpacker.eof:
            raise FormatError(f"{path} is compressed, and cut off.")
        data = unpacker.unused_data
    return bytes(unpacked)


def read_folder(path: Path, without: Collection[Path] = ()) -> Imported:
    """All results of a folder but for some folders in it, which may be none, and what only looked like one.

    Raises:
        FormatError: it cannot be read, or holds too many files.
    """
    runs: list[ImportedRun] = []
    refused: list[Refused] = []
    descriptions: dict[str, Mapping[str, Any]] = {}
    for file in _files(path, without):
        name = spelled(file.relative_to(path))
        try:
            text = _text(file)
        except FormatError as e:
            refused.append(Refused(name, spelled(str(e))))
            continue
        found, no = find_runs(text, Place(name))
        runs += [complete(run) for run in found]
        described = whole(text) if not found and len(text) <= _DESCRIPTION_MAX else None
        if described and _describes(values.mapping(described.value)):
            descriptions[name] = values.mapping(described.value)
        else:
            refused += [Refused(f"{name} {r.position}".strip(), r.reason) for r in no]
    runs = _without_warm_ups(runs, refused, descriptions)
    return Imported(runs=tuple(_described(without_twins(runs), descriptions)), refused=tuple(refused))


def _describes(value: Mapping[str, Any]) -> bool:
    """A file that holds no numbers, but says something of those beside it."""
    return genai_bench.is_metadata(value) or bool(aiperf.warm_ups(value))


def _without_warm_ups(
    runs: list[ImportedRun], refused: list[Refused], descriptions: Mapping[str, Mapping[str, Any]]
) -> list[ImportedRun]:
    """AIPerf lists in one file which of the others are of its warm-up."""
    warm = {str(Path(name).parent / file) for name, about in descriptions.items() for file in aiperf.warm_ups(about)}
    refused += [Refused(name, "of the warm-up, which counts for nothing.") for name in sorted(warm)]
    return [run for run in runs if run.source.file not in warm]


def _files(path: Path, without: Collection[Path]) -> list[Path]:
    try:
        next(path.iterdir(), None)  # to walk passes over what may not be read
    except OSError as e:
        raise FormatError(f"{path} cannot be read: {e.strerror}.") from None
    files = []
    for folder, below, names in folders_below(path):
        below[:] = [name for name in below if folder / name not in without]
        files += [file for file in map(folder.joinpath, names) if file.suffix in _SUFFIXES and file.is_file()]
    if len(files) > _FILES_MAX:
        raise FormatError(f"{path} holds {len(files):,} files; give the folder of one experiment.")
    return files


def _described(runs: list[ImportedRun], descriptions: Mapping[str, Mapping[str, Any]]) -> Iterator[ImportedRun]:
    """genai-bench says in one file what holds for all of its folder."""
    metadata = {Path(name).parent: about for name, about in descriptions.items() if genai_bench.is_metadata(about)}
    for run in runs:
        told = metadata.get(Path(run.source.file).parent) if run.source.tool == "genai-bench" else None
        conditions = genai_bench.described(run.conditions, told) if told else run.conditions
        yield msgspec.structs.replace(run, conditions=conditions)
