"""Folders for what passes between us and those that we start. None outlives us for long, though we are killed."""

import contextlib
import fcntl
import os
import shutil
import tempfile
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


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A new one among the system's own, locked while we live; those of that prefix whose owner was killed go first."""
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError), _locked(left) as is_ours:  # another user's, or gone
            if is_ours:
                shutil.rmtree(left, ignore_errors=True)
    with contextlib.ExitStack() as held:
        folder = _new(prefix, held)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _new(prefix: str, held: contextlib.ExitStack) -> Path:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        with contextlib.suppress(FileNotFoundError):  # somebody who clears away was quicker than we
            if held.enter_context(_locked(folder)) and folder.exists():
                return folder


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Whether the folder is ours within the block; the kernel lets go of it when we end in whatever way."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)
