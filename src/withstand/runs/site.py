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


def write_site(folder: Path, site: Site) -> None:
    """Of a run, or of a folder with several.

    Raises:
        StorageError: it cannot be written.
    """
    write_atomically(folder / SITE_NAME, msgspec.json.format(msgspec.json.encode(site), indent=1))


def site_of(folder: Path) -> Site | None:
    """None = it was not measured at a stack.

    Raises:
        StorageError: it is damaged.
    """
    path = folder / SITE_NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=Site)
    except OSError:
        return None
    except (msgspec.MsgspecError, RecursionError) as e:
        raise StorageError(f"{path}, which tells of the stack, is damaged: {e}. Measure anew.") from None
