"""What a supervisor is asked to do meanwhile: a file for each service that shall be started again.

It lies in the stack's folder, and is gone once the supervisor has written down that it has heard.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from withstand.files import discard, storage_error, write_atomically

_FOLDER = "restart"


def order(folder: Path, services: Iterable[str]) -> None:
    """Ask for them.

    Raises:
        StorageError: it cannot be written.
    """
    orders = folder / _FOLDER
    try:
        orders.mkdir(exist_ok=True)
    except OSError as e:
        raise storage_error(orders, e) from None
    for service in services:
        write_atomically(orders / service, b"")


def ordered(folder: Path) -> set[str]:
    """Services that somebody has asked for, and other files' names that may lie there; a folder asks for nothing."""
    with suppress(OSError):
        return {path.name for path in (folder / _FOLDER).iterdir() if path.is_file()}
    return set()


def heard(folder: Path, services: Iterable[str]) -> None:
    """They are known, or not wanted any more."""
    for service in services:
        discard(folder / _FOLDER / service)
