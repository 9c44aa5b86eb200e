"""A comparison as a line of the list: who was compared, and what can be concluded."""

from pathlib import Path

import msgspec

from withstand.ui.entry import Entry, shown
from withstand.ui.reach import OutOfReachError, read
from withstand.ui.walk import Place


class _Side(msgspec.Struct, frozen=True):
    label: str


class _Comparison(msgspec.Struct, frozen=True):
    """What is shown of ``comparison.json``."""

    sides: tuple[_Side, ...]
    headline: str


def compared_of(place: Place, root: Path, about: Entry) -> Entry:
    """The line; a page that lies there without its numbers is listed by its name alone, with why if that is known."""
    if place.stamps[1] is None:
        return about
    try:
        told = msgspec.json.decode(read(place.path / "comparison.json", root), type=_Comparison)
    except OutOfReachError as e:
        return msgspec.structs.replace(about, why=shown(str(e)))
    except (msgspec.MsgspecError, RecursionError):
        return about
    return msgspec.structs.replace(
        about,
        target=shown(", ".join(side.label for side in told.sides)),
        headline=shown(told.headline),
    )
