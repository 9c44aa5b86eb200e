"""What a folder with several run folders was made for: its manifest, a JSON file, read and written as a whole.

What became of it, each run folder tells itself.
"""

import contextlib
from pathlib import Path
from typing import TypeVar

import msgspec

from withstand.errors import StorageError, UsageError
from withstand.files import discard, write_atomically
from withstand.runs.environment import still_runs, this_process
from withstand.runs.manifest import Writer
from withstand.runs.site import SITE_NAME

SCHEMA = 1


class Commission(msgspec.Struct, frozen=True, kw_only=True):
    """What all of them have."""

    schema: int = SCHEMA
    version: str
    created_utc: str
    argv: tuple[str, ...] = ()
    writer: Writer
    """Who goes from run to run."""


_Kind = TypeVar("_Kind", bound=Commission)


def write_commission(manifest: Path, asked: Commission) -> None:
    """Replace it.

    Raises:
        StorageError: it cannot be written.
    """
    write_atomically(manifest, msgspec.json.format(msgspec.json.encode(asked), indent=1))


def read_commission(manifest: Path, kind: type[_Kind]) -> _Kind:
    """What was asked.

    Raises:
        UsageError: there is none.
        StorageError: it is damaged, or of a later version.
    """
    try:
        asked = msgspec.json.decode(manifest.read_bytes(), type=kind)
    except OSError as e:
        raise UsageError(f"{manifest} cannot be read: {e.strerror}.") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
        raise StorageError(f"{manifest} is damaged: {e}. Its run folders can be read one by one.") from None
    if asked.schema > SCHEMA:
        raise StorageError(f"{manifest} was written by a later withstand (schema {asked.schema}); update this one.")
    return asked


def taken_over(manifest: Path, asked: _Kind) -> _Kind:
    """From now on this process writes it.

    Raises:
        UsageError: another one does.
    """
    if asked.writer != this_process() and still_runs(asked.writer):
        raise UsageError(f"{manifest.parent} is being written by process {asked.writer.pid}; stop that first.")
    asked = msgspec.structs.replace(asked, writer=this_process())
    write_commission(manifest, asked)
    return asked


def called_off(manifest: Path) -> None:
    """Nothing came of it: it goes, and its folder unless others have put something beside it."""
    discard(manifest)
    discard(manifest.with_name(SITE_NAME))
    with contextlib.suppress(OSError):
        manifest.parent.rmdir()
