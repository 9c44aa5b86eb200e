"""One process at a time: who waits for another says so."""

import fcntl

from withstand import clock
from withstand.stack.progress import Progress

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


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
