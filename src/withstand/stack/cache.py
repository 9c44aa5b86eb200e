"""The user's cache folder, and one process at a time in it. It knows nothing of what is kept there."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from withstand.errors import EngineError
from withstand.files import named_by
from withstand.stack.progress import Progress
from withstand.stack.turn import wait_for_turn

_ENV = "WITHSTAND_CACHE"
_LOCK = ".lock"
_WORK = ".work-"
_WAITING = "Waiting for another withstand that prepares the model"


def cache_folder() -> Path:
    """Where files of ours outlive a run; it need not exist.

    Raises:
        EngineError: the user has no home.
        UsageError: it is named from a folder that is gone.
    """
    if named := named_by(_ENV):
        return named
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if xdg.is_absolute():  # a relative one is to be ignored, says the XDG base directory specification
        return xdg / "withstand"
    try:
        home = Path.home()
    except RuntimeError:
        raise EngineError(f"This user has no home folder for the model's cache; name a folder by {_ENV}.") from None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "withstand"


@contextmanager
def workplace(folder: Path, progress: Progress) -> Iterator[Path]:
    """An empty folder inside ``folder``, for one process at a time; it is gone afterwards.

    What is finished moves out of it by a rename, so a reader never sees half a file. The lock, which the kernel takes
    from a process that dies, saves double work and lets leftovers be swept.

    Raises:
        EngineError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / _LOCK).open("wb") as lock:
            wait_for_turn(lock.fileno(), progress, _WAITING)
            _sweep(folder)
            with tempfile.TemporaryDirectory(prefix=_WORK, dir=folder, ignore_cleanup_errors=True) as work:
                yield Path(work)
    except OSError as e:
        raise EngineError(
            f"The cache folder {folder} cannot be written: {e.strerror or e}; name another one by {_ENV}."
        ) from None


def _sweep(folder: Path) -> None:
    """What a process left that was killed in the middle of its work."""
    for leftover in folder.glob(f"{_WORK}*"):
        shutil.rmtree(leftover, ignore_errors=True)
