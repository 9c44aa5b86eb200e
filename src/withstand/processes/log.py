"""A service's log: opened once, and known by that descriptor whatever is put in its place.

Who writes may remove his log, or put a link, a pipe or a folder there: nothing but the file that was opened is read or
cut (``cut``), also where nobody sees it any more.
"""

import os
from pathlib import Path

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def opened(path: Path) -> int:
    """A descriptor to append to it and to read it by. A link in its or its folder's place is taken away.

    Raises:
        OSError: there can be none.
    """
    if path.parent.is_symlink():
        path.parent.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_lost(path):
        path.unlink()
    log = os.open(path, _FLAGS, 0o666)
    os.set_blocking(log, True)  # the flag is also his who gets it as his output
    return log


def is_lost(path: Path) -> bool:
    """Whether something stands there that is no file; where we may not look, nothing is seen."""
    return os.path.islink(path) or (os.path.lexists(path) and not os.path.isfile(path))  # noqa: PTH113, PTH114  never raise
