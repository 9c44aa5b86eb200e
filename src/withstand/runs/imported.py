"""What ``withstand import`` keeps: ``imported.json``, and beside it the records of each run that has facts.

The file is complete in itself: origin, conditions, numbers, everything left out with its reason.
"""

import gzip
import re
import zlib
from pathlib import Path
from typing import Annotated

import msgspec

from withstand import __version__, clock
from withstand.errors import StorageError
from withstand.files import ensure_empty, is_there, storage_error, write_atomically
from withstand.interop.shape import Facts, Imported, ImportedRun, Refused
from withstand.record import decode_record, encode_record

# Schema history
# 1  2026-11  the first
SCHEMA = 1

_NAME = "imported.json"
_RECORDS = re.compile(r"^records-\d+\.jsonl\.gz$")
_LEVEL = 3


class _Kept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    run: ImportedRun
    """Without its facts, which lie in ``records``."""
    records: str | None = None
    starts_known: bool = False
    gaps_known: bool = False


class _File(msgspec.Struct, frozen=True, kw_only=True):
    schema: int
    version: str
    created_utc: str
    runs: Annotated[tuple[_Kept, ...], msgspec.Meta(min_length=1)]
    refused: tuple[Refused, ...] = ()


def is_import(path: Path) -> bool:
    """Whether a folder was made by ``keep_import``."""
    return is_there(path / _NAME) and (path / _NAME).is_file()


def keep_import(imported: Imported, path: Path) -> Path:
    """Write everything into a new folder; its path.

    Raises:
        UsageError: the folder holds something already.
        StorageError: it cannot be written.
    """
    ensure_empty(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise storage_error(path, e) from None
    kept = tuple(_keep(run, number, path) for number, run in enumerate(imported.runs, start=1))
    file = _File(
        schema=SCHEMA,
        version=__version__,
        created_utc=clock.utc_iso(clock.anchor().wall_ns),
        runs=kept,
        refused=imported.refused,
    )
    write_atomically(path / _NAME, msgspec.json.format(msgspec.json.encode(file), indent=2) + b"\n")
    return path


def _keep(run: ImportedRun, number: int, path: Path) -> _Kept:
    if run.facts is None:
        return _Kept(run=run)
    name = f"records-{number}.jsonl.gz"
    lines = b"".join(encode_record(record) + b"\n" for record in run.facts.records)
    write_atomically(path / name, gzip.compress(lines, _LEVEL, mtime=0))
    return _Kept(
        run=msgspec.structs.replace(run, facts=None),
        records=name,
        starts_known=run.facts.starts_known,
        gaps_known=run.facts.gaps_known,
    )


def imported_of(path: Path, data: bytes) -> tuple[ImportedRun, ...]:
    """What ``imported.json`` of the folder ``path`` says of its runs, without their facts.

    Raises:
        StorageError: it is damaged, or of a newer version.
    """
    try:
        return tuple(kept.run for kept in _decoded(path, data).runs)
    except (msgspec.MsgspecError, ValueError, RecursionError) as e:
        raise _damaged(path, e) from None


def open_import(path: Path) -> Imported:
    """What was kept.

    Raises:
        StorageError: it is damaged, or of a newer version.
    """
    try:
        file = _decoded(path, (path / _NAME).read_bytes())
        runs = tuple(_opened(kept, path) for kept in file.runs)
    except (msgspec.MsgspecError, OSError, EOFError, ValueError, RecursionError, zlib.error) as e:
        raise _damaged(path, e) from None
    return Imported(runs=runs, refused=file.refused)


def _decoded(path: Path, data: bytes) -> _File:
    file = msgspec.json.decode(data, type=_File)
    if file.schema > SCHEMA:
        raise StorageError(f"{path} was written by withstand {file.version}; use that version or a newer one.")
    return file


def _damaged(path: Path, e: Exception) -> StorageError:
    return StorageError(f"{path} is damaged ({' '.join(str(e).split())}); import the files again.")


def _opened(kept: _Kept, path: Path) -> ImportedRun:
    if kept.records is None:
        return kept.run
    if not _RECORDS.match(kept.records):
        raise ValueError(f"no name of a record file: {kept.records}")
    lines = gzip.decompress((path / kept.records).read_bytes()).splitlines()
    records = tuple(decode_record(line) for line in lines)
    facts = Facts(records=records, starts_known=kept.starts_known, gaps_known=kept.gaps_known)
    return msgspec.structs.replace(kept.run, facts=facts)
