"""What lies at a path: runs of ours, and what other tools have written."""

from pathlib import Path

import msgspec

from withstand.errors import WithstandError
from withstand.files import folders_below, is_there, spelled
from withstand.interop.read import read_folder, read_path
from withstand.interop.shape import Imported
from withstand.runs import RunFolder, is_import, open_import


class Measured(msgspec.Struct, frozen=True):
    """One of them."""

    path: Path
    imported: Imported | None = None
    """None: a folder of ours, which may be damaged, or is not there at all."""
    unread: WithstandError | None = None
    """Why nothing could be found there."""

    @property
    def is_nothing(self) -> bool:
        """All that there is to tell is what was left out."""
        return self.imported is not None and not self.imported.runs

    @property
    def left_out(self) -> tuple[str, ...]:
        """Where something looked like a result and is none, and why."""
        return self.imported.left_out(spelled(self.path.name)) if self.imported else ()

    def read(self) -> RunFolder | Imported:
        """It, opened.

        Raises:
            WithstandError: it cannot be.
        """
        if self.unread:
            raise self.unread
        if self.imported is not None:
            return self.imported
        return open_import(self.path) if _is_import(self.path) else RunFolder.open(self.path)


def measured_at(path: Path) -> list[Measured]:
    """All of it: a folder may hold many run folders and imports, and beside them results of other tools.

    What stands in our own folders is not read a second time from what was exported of them. Where what lies beside them
    only looks like a result, the last has no runs, and tells why.

    Raises:
        WithstandError: there is nothing that was measured.
    """
    if not is_there(path) or _is_ours(path):
        return [Measured(path)]
    own = _own_folders(path) if path.is_dir() else []
    if not own:
        return [Measured(path, read_path(path))]
    return [*map(Measured, own), *_beside(path, own)]


def _is_ours(path: Path) -> bool:
    return RunFolder.is_one(path) or is_import(path)


def _is_import(path: Path) -> bool:
    """Whoever has imported into a run folder has the run."""
    return is_import(path) and not RunFolder.is_one(path)


def _own_folders(path: Path) -> list[Path]:
    """All below a folder, by name."""
    found = []
    for folder, below, _ in folders_below(path):
        if _is_ours(folder):
            found.append(folder)
            below.clear()
    return found


def _beside(path: Path, own: list[Path]) -> list[Measured]:
    found = read_folder(path, own)
    runs = tuple(run for run in found.runs if run.source.tool != "withstand")
    return [Measured(path, Imported(runs=runs, refused=found.refused))] if runs or found.refused else []
