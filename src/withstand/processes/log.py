"""A service's log: opened once, and known by that descriptor whatever is put in its place; it has a bound.

Who writes may remove his log, or put a link, a pipe or a folder there: nothing but the file that was opened is read or
cut, and it is as long as that also where nobody sees it any more.
"""

import os
from contextlib import suppress
from pathlib import Path

BYTES_MAX = 256 << 20
_KEPT_BYTES = 4 << 20
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def opened(path: Path) -> int:
    """A descriptor to append to it and to read it by. A link or pipe in its place is taken away.

    Raises:
        OSError: there can be none.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_lost(path):
        path.unlink()
    log = os.open(path, _FLAGS, 0o666)
    os.set_blocking(log, True)  # the flag is also his who gets it as his output
    return log


def is_lost(path: Path) -> bool:
    """Whether something stands there that is no file."""
    return path.is_symlink() or (path.exists() and not path.is_file())


def bound(log: int, bytes_max: int = BYTES_MAX, kept_bytes: int = _KEPT_BYTES) -> None:
    """Of one that has outgrown it the end is kept.

    Who writes has opened it to append, and so goes on at its new end; what comes in the same moment may be lost.
    """
    with suppress(OSError):  # it is looked at again soon
        size = os.fstat(log).st_size
        if size <= bytes_max:
            return
        kept = os.pread(log, kept_bytes, size - kept_bytes).partition(b"\n")[2]
        os.ftruncate(log, 0)
        os.write(log, b"[withstand has cut %d bytes before this]\n" % (size - len(kept)) + kept)
