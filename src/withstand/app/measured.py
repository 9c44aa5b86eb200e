"""What lies at a path: runs of ours, and what other tools have written."""

from pathlib import Path

import msgspec

from withstand.errors import FormatError
from withstand.files import is_there
from withstand.interop.read import read_path
from withstand.interop.shape import Imported
from withstand.runs import RunFolder, is_import, open_import, run_folders


class Measured(msgspec.Struct, frozen=True):
    """One of them."""

    path: Path
    imported: Imported | None = None
    """None: a run folder of ours, which may be damaged, or is not there at all."""


def measured_at(path: Path) -> list[Measured]:
    """All of it: a folder may hold many run folders, and beside them results of other tools.

    What stands in our own run folders is not read a second time from what was exported of them.

    Raises:
        WithstandError: there is nothing that was measured.
    """
    if not is_there(path) or RunFolder.is_one(path):
        return [Measured(path)]
    if is_import(path):
        return [Measured(path, open_import(path))]
    own = run_folders(path) if path.is_dir() else []
    if not own:
        return [Measured(path, read_path(path))]
    return [*map(Measured, own), *_beside(path, own)]


def _beside(path: Path, own: list[Path]) -> list[Measured]:
    try:
        found = read_path(path, own)
    except FormatError:
        return []
    runs = tuple(run for run in found.runs if run.source.tool != "withstand")
    return [Measured(path, Imported(runs=runs, refused=found.refused))] if runs else []
