"""One process at a time: who waits for another says so."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from withstand import clock
from withstand.stack.progress import Progress
from withstand.stack.unwritten import unwritten

_LOOK_S = 0.1


def wait_for_turn(lock: int, progress: Progress, step: str) -> None:
    """Until the file that ``lock`` is a descriptor of is ours alone, as long as that is open."""
    waited = False
    while not _taken(lock):
        waited = True
        progress(step, 0, None)
        clock.sleep_s(_LOOK_S)
    if waited:
        progress(step, 1, 1)


def turn_in(folder: Path, progress: Progress, step: str) -> int:
    """A descriptor of the folder, which is made where it is not there: as long as it is open, ours alone, and stays.

    Raises:
        StorageError: it cannot be made.
    """
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise unwritten(folder, e) from None
        if (lock := _opened(folder)) is None:
            continue
        try:
            wait_for_turn(lock, progress, step)
            if _is_at(folder, lock):
                return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def remove_unused(folder: Path) -> None:
    """The folder of turns, if it is empty and it is nobody's turn: who comes later would have another one's lock."""
    with suppress(OSError), turn_if_free(folder) as is_ours:
        if is_ours:
            folder.rmdir()


@contextmanager
def turn_if_free(folder: Path) -> Iterator[bool]:
    """Whether it was nobody's turn, and is ours within the block."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError:
        yield False
        return
    try:
        yield _taken(lock) and _is_at(folder, lock)
    finally:
        os.close(lock)


def _opened(folder: Path) -> int | None:
    """None = it was removed meanwhile."""
    try:
        return os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise unwritten(folder, e) from None


def _is_at(folder: Path, lock: int) -> bool:
    """Whether it is that folder still, and not one that was made after its removal."""
    try:
        return os.path.samestat(os.fstat(lock), folder.stat())
    except OSError:
        return False


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
