"""``stack.json`` beside a run: of which stack its targets were services, and where those listened then."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from withstand.errors import StorageError
from withstand.files import write_atomically

SITE_NAME = "stack.json"


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """What is written."""

    name: str
    file: str
    """Of the stack, as a whole path."""
    tables: Mapping[str, str]
    """A hash of each, by which a change is seen."""
    addresses: Mapping[str, str]
    """Where what was: names → URLs."""
    plan: str | None = None
    """A hash of the file's own plan; None = the run is another one's."""


def write_site(folder: Path, site: Site) -> None:
    """Of a run, or of a folder with several.

    Raises:
        StorageError: it cannot be written.
    """
    write_atomically(folder / SITE_NAME, msgspec.json.format(msgspec.json.encode(site), indent=1))


def site_of(folder: Path) -> Site | None:
    """None = it was not measured at a stack.

    Raises:
        StorageError: it is damaged, or may not be read.
    """
    path = folder / SITE_NAME
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise _damaged(path, "it is no file")
    try:
        return msgspec.json.decode(path.read_bytes(), type=Site)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as e:
        raise _damaged(path, e.strerror) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
        raise _damaged(path, e) from None


def _damaged(path: Path, why: object) -> StorageError:
    return StorageError(f"{path}, which tells of the stack, is damaged: {why}. Measure anew.")
