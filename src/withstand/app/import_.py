"""``withstand import``: other tools' files → one folder of ours."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from withstand.errors import FormatError
from withstand.files import spelled
from withstand.interop.once import without_twins
from withstand.interop.read import read_path
from withstand.interop.shape import Imported, Refused
from withstand.runs import keep_import


class Kept(msgspec.Struct, frozen=True):
    """What was imported, and why nothing was of some of the files."""

    imported: Imported
    no_results: tuple[Refused, ...]


def import_files(paths: Sequence[Path], output_dir: Path) -> Kept:
    """Read all, keep all; a run that stands in several of them counts once.

    Raises:
        WithstandError: no file holds a result, or the folder cannot be written.
    """
    read: list[Imported] = []
    errors: list[tuple[Path, FormatError]] = []
    for path in paths:
        try:
            read.append(read_path(path))
        except FormatError as e:
            errors.append((path, e))
    if not read:
        raise errors[0][1]
    runs = without_twins([run for imported in read for run in imported.runs])
    imported = Imported(runs=tuple(runs), refused=tuple(r for part in read for r in part.refused))
    keep_import(imported, output_dir)
    return Kept(imported, tuple(Refused(spelled(path), spelled(str(e))) for path, e in errors))
