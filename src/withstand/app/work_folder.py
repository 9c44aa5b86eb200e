"""A folder for what passes between a stage and its workers, while the stage lasts."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def work_folder(path: Path) -> Iterator[Path]:
    """For what passes between us and the workers: empty at first, though a run crashed here, and gone at last."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(exist_ok=True)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
