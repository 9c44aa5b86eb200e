"""A comparison as a line of the list: who was compared, and what can be concluded."""

from pathlib import Path

import msgspec

from withstand.ui.entry import Entry, State, shown
from withstand.ui.reach import OutOfReachError, read
from withstand.ui.walk import Place


class _Side(msgspec.Struct, frozen=True):
    label: str
    sources: tuple[str, ...] = ()


class _Comparison(msgspec.Struct, frozen=True):
    """What is shown of ``comparison.json``."""

    sides: tuple[_Side, ...]
    headline: str


class _Turns(msgspec.Struct, frozen=True):
    """What is shown of ``ab.json``."""

    pairs: int


def compared_of(place: Place, root: Path, about: Entry) -> Entry:
    """The line; a page that lies there without its numbers is listed by its name alone, with why if that is known."""
    if place.stamps[1] is None:
        return about
    try:
        told = msgspec.json.decode(read(place.path / "comparison.json", root), type=_Comparison)
    except OutOfReachError as e:
        return msgspec.structs.replace(about, why=shown(str(e)))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return about
    lack = _lack(place, root, told)
    return msgspec.structs.replace(
        about,
        state=State.PARTIAL if lack else about.state,
        why=lack,
        target=shown(", ".join(side.label for side in told.sides)),
        headline=shown(told.headline),
    )


def _lack(place: Place, root: Path, told: _Comparison) -> str | None:
    """Of two sides measured in turn that were cut: each pair that is whole is a source of either side."""
    if place.stamps[3] is None:
        return None
    try:
        asked = msgspec.json.decode(read(place.path / "ab.json", root), type=_Turns).pairs
    except (OutOfReachError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # then nobody knows
        return None
    whole = min((len(side.sources) for side in told.sides), default=0)
    return f"Partial: {whole} of {asked} pairs are measured. `--resume` goes on with it." if whole < asked else None
