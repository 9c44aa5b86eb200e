"""Writing so that a crash, a full disk or a reader in between never sees half a file; and looking at any path."""

import contextlib
import errno
import os
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
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


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """Of each path its last part, of those alike as many as tell them apart, and a number if it is there twice."""
    real = [Path(os.path.realpath(path)) for path in paths]
    names = {path: path.name for path in real}
    for length in range(2, max((len(path.parts) for path in real), default=0)):
        counts = Counter(names.values())
        names = {path: "/".join(path.parts[-length:]) if counts[name] > 1 else name for path, name in names.items()}
    times, seen = Counter(real), Counter[Path]()
    numbered = []
    for path in real:
        seen[path] += 1
        numbered.append(names[path] if times[path] == 1 else f"{names[path]} #{seen[path]}")
    return numbered


def folders_below(path: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """As ``os.walk`` from above, by name and without what is hidden; folders taken from the list are passed over."""
    for root, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield Path(root), folders, sorted(name for name in files if not name.startswith("."))
