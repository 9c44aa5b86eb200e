"""``withstand import``: other tools' files → one folder of ours."""

from collections.abc import Sequence
from pathlib import Path

from withstand.interop.once import without_twins
from withstand.interop.read import read_path
from withstand.interop.shape import Imported
from withstand.runs import keep_import


def import_files(paths: Sequence[Path], output_dir: Path) -> Imported:
    """Read all, keep all; a run that stands in several of them counts once.

    Raises:
        WithstandError: a file holds no result, or the folder cannot be written.
    """
    read = [read_path(path) for path in paths]
    runs = without_twins([run for imported in read for run in imported.runs])
    imported = Imported(runs=tuple(runs), refused=tuple(r for part in read for r in part.refused))
    keep_import(imported, output_dir)
    return imported
