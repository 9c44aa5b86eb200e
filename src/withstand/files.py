"""Writing so that a crash, a full disk or a reader in between never sees half a file; and looking at any path."""

import contextlib
import errno
import os
import secrets
from pathlib import Path

from withstand.errors import StorageError, UsageError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def write_atomically(path: Path, data: bytes) -> None:
    """The whole of ``data`` under ``path``, or nothing changed. A device or pipe is written to, never replaced.

    Raises:
        StorageError: the disk is full, read-only, or not ours.
    """
    if _is_special(path):
        _write_into(path, data)
        return
    target = Path(os.path.realpath(path))  # a link stays one
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
        make_durable(temporary)
        temporary.replace(target)
    except OSError as e:
        discard(temporary)
        raise storage_error(path, e) from None


def _is_special(path: Path) -> bool:
    """``/dev/stdout``, ``/dev/null``, a named pipe: to put a file in its place would take it from everybody."""
    try:
        return path.exists() and not path.is_file() and not path.is_dir()
    except OSError:
        return False  # it cannot be written either, which is told better by who tries


def _write_into(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as e:
        raise storage_error(path, e) from None


def discard(path: Path) -> None:
    """Remove a file if it is there; where not even that can be done, the error before it is the one to tell."""
    with contextlib.suppress(OSError):
        path.unlink()


def make_durable(path: Path) -> None:
    """Have the disk keep a file before something is renamed to it or removed for it: a power cut comes in between."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def storage_error(path: Path, e: OSError) -> StorageError:
    """What failed, why, and the cure."""
    cure = "Free some space" if e.errno in _FULL else "Choose a folder that exists and may be written to"
    return StorageError(f"{path} cannot be written: {e.strerror}. {cure}; what was measured before is kept.")


def is_there(path: Path) -> bool:
    """Whether a path leads to something; what is too long for a name leads nowhere.

    Raises:
        UsageError: it may not even be looked at.
    """
    try:
        return path.exists()
    except OSError as e:
        if e.errno == errno.ENAMETOOLONG:
            return False
        raise UsageError(f"{path} cannot be read: {e.strerror}.") from None


def name_of(path: Path) -> str:
    """The last part of where a path leads; a link that leads to itself has its own name."""
    return Path(os.path.realpath(path)).name
