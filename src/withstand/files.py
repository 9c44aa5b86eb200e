"""Writing so that a crash, a full disk or a reader in between never sees half a file; and looking at any path."""

import contextlib
import errno
import os
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

from withstand.errors import StorageError, UsageError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def write_atomically(path: Path, data: bytes, error: Callable[[Path, OSError], StorageError] | None = None) -> None:
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
        raise (error or storage_error)(path, e) from None


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
    return StorageError(f"{unwritable(path, e)}; what was measured before is kept.")


def unwritable(path: Path, e: OSError) -> str:
    """The same where nothing was measured, as the beginning of a sentence."""
    if not path.is_absolute() and _here_is_gone():
        return f"{path} cannot be written: the current folder is gone. Change to one that is there"
    cure = "Free some space" if e.errno in _FULL else "Choose a folder that exists and may be written to"
    return f"{path} cannot be written: {e.strerror}. {cure}"


def _here_is_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109  nothing is done with it
    except OSError:
        return True
    return False


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


def why_closed(path: Path) -> str | None:
    """A clause of a path that may not even be looked at; None = it may, whether something is there or not."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last: it holds a NUL
        return None
    except OSError as e:
        return f"cannot be read: {e.strerror}"
    return None


def ensure_empty(path: Path) -> None:
    """A folder that is to be filled is not there, or empty.

    Raises:
        UsageError: it is not.
    """
    if not is_there(path):
        return
    if not path.is_dir():
        raise UsageError(f"{path} is a file, where a folder is to be; choose another --output-dir.")
    if any(path.iterdir()):
        raise UsageError(f"{path} is not empty; choose another --output-dir.")


def named_by(variable: str) -> Path | None:
    """The folder that an environment variable names, from / on; None = it names none.

    Raises:
        UsageError: it is relative to a folder that is gone.
    """
    if not (named := os.environ.get(variable)):
        return None
    try:
        return Path(named).absolute()
    except FileNotFoundError:
        raise UsageError(
            f"{variable} = {named!r} is relative to the current folder, which is gone; name it from / on."
        ) from None


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """Of each path its last part, of those alike as many as tell them apart, and a number if it is there twice."""
    real = [Path(os.path.realpath(path)) for path in paths]
    names = {path: path.name for path in real}
    for length in range(2, max((len(path.parts) for path in real), default=0)):
        counts = Counter(names.values())
        names = {path: str(Path(*path.parts[-length:])) if counts[name] > 1 else name for path, name in names.items()}
    return numbered([spelled(names[path]) for path in real])


def numbered(names: Sequence[str]) -> list[str]:
    """Those that are there more than once with a number behind them, which makes them like no other."""
    times, taken = Counter(names), set(names)
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(1))
    told = []
    for name in names:
        if times[name] > 1:
            told.append(next(new for n in numbers[name] if (new := f"{name} #{n}") not in taken))
        else:
            told.append(name)
    return told


def spelled(path: Path | str) -> str:
    """A name may hold bytes that are no text; nobody could write them down again."""
    return os.fsencode(path).decode("utf-8", "replace")


def folders_below(path: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """As ``os.walk`` from above, by name and without what is hidden; folders taken from the list are passed over.

    Links are followed, but not to where a folder has been met already, nor to one that holds all of them.
    """
    top = Path(os.path.realpath(path))
    seen = {top}
    for root, folders, files in os.walk(path, followlinks=True):
        names = sorted(name for name in folders if not name.startswith("."))
        folders[:] = [name for name in names if _is_new(Path(os.path.realpath(Path(root, name))), top, seen)]
        yield Path(root), folders, sorted(name for name in files if not name.startswith("."))


def _is_new(real: Path, top: Path, seen: set[Path]) -> bool:
    if real in seen or top.is_relative_to(real):
        return False
    seen.add(real)
    return True
