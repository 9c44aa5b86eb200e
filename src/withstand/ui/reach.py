"""Reading in a folder that a stranger may have filled: regular files of bounded size below one root, and no links."""

import os
import stat
from pathlib import Path

import msgspec

SMALL_BYTES_MAX = 16 << 20
PAGE_BYTES_MAX = 64 << 20


class Stamp(msgspec.Struct, frozen=True):
    """By which a file is known to be the same as before."""

    mtime_ns: int
    size: int


class OutOfReachError(Exception):
    """A file that is not there, or not to be read: a link, a pipe, too large."""


def stamp_of(path: Path) -> Stamp | None:
    """None where there is no regular file of this very name."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return Stamp(found.st_mtime_ns, found.st_size) if stat.S_ISREG(found.st_mode) else None


def is_below(path: Path, root: Path) -> bool:
    """Whether a path is where it says, with no link on the way. ``root`` is a real path."""
    return Path(os.path.realpath(path)) == path and path.is_relative_to(root)


def read(path: Path, root: Path, most: int = SMALL_BYTES_MAX) -> bytes:
    """A whole file.

    Raises:
        OutOfReachError: it is none that may be read.
    """
    if not is_below(path, root):
        raise OutOfReachError(f"{path.name} leads out of the folder that is shown.")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as e:
        raise OutOfReachError(f"{path.name} cannot be read: {e.strerror}.") from None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OutOfReachError(f"{path.name} is no file.")
        if found.st_size > most:
            raise OutOfReachError(f"{path.name} is larger than {most >> 20} MiB.")
        return file.read(found.st_size)  # what is appended meanwhile is seen by the next look
