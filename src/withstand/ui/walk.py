"""What lies below a folder, by names alone: nothing is opened, no link is followed, and there is an end to it."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from withstand.ui.entry import Kind
from withstand.ui.reach import Stamp, stamp_of

FOLDERS_MAX = 20_000
DEPTH_MAX = 12
FILE_BYTES_MAX = 4 << 20
"""A result file of another tool is read whole to be listed."""

_SUFFIXES = frozenset({".json", ".jsonl", ".csv", ".txt", ".log"})
_RUN, _IMPORT, _SUMMARY, _REPORT, _COMPARISON, _COMPARED, _IN_TURN, _BOARD = (
    "run.json",
    "imported.json",
    "summary.json",
    "report.html",
    "comparison.html",
    "comparison.json",
    "ab.json",
    "board.html",
)
_STAMPED = {
    Kind.RUN: (_RUN, _SUMMARY, _REPORT, _BOARD),
    Kind.IMPORT: (_IMPORT, _REPORT),
    Kind.COMPARISON: (_COMPARISON, _COMPARED, _BOARD, _IN_TURN),
}
PAGES = {Kind.RUN: _REPORT, Kind.SEARCH: _REPORT, Kind.IMPORT: _REPORT, Kind.COMPARISON: _COMPARISON}


class Place(msgspec.Struct, frozen=True):
    """Where something may be, and the stamps by which it is known to be as before."""

    path: Path
    kind: Kind
    stamps: tuple[Stamp | None, ...]
    block_of: Path | None = None
    """The folder of two sides measured in turn, with their comparison, below which it lies."""

    @property
    def stamp(self) -> Stamp:
        """Of the file that makes it what it is."""
        assert self.stamps[0] is not None
        return self.stamps[0]

    @property
    def page(self) -> str | None:
        """The file's name, where its page lies in the folder."""
        return self._there(PAGES.get(self.kind))

    @property
    def board(self) -> str | None:
        """What a stack's monitoring saw of it, where that was kept."""
        return self._there(_BOARD)

    def _there(self, name: str | None) -> str | None:
        names = _STAMPED.get(self.kind, ())
        return name if name in names and self.stamps[names.index(name)] is not None else None


class Walked(msgspec.Struct, frozen=True):
    """All of it, as far as one looks."""

    places: tuple[Place, ...]
    cut: bool
    """There are more folders than one looks into."""


def walk(root: Path) -> Walked:
    """The newest first, and what is ours before what others have written."""
    places: list[Place] = []
    folders: list[tuple[Path, int, Path | None]] = [(root, 0, None)]
    looked = 0
    while folders and looked < FOLDERS_MAX:
        folder, depth, turns = folders.pop()
        looked += 1
        files, below = _names(folder)
        own = [msgspec.structs.replace(place, block_of=turns) for place in _own(folder, files)]
        turns = folder if {_IN_TURN, _COMPARISON} <= files else turns
        places += own
        if not any(place.kind in {Kind.RUN, Kind.IMPORT} for place in own):
            places += _others(folder, files)
            folders += [(folder / name, depth + 1, turns) for name in below if depth < DEPTH_MAX]
    order = sorted(places, key=lambda place: (place.kind is Kind.FILE, -place.stamp.mtime_ns))
    return Walked(tuple(order), cut=bool(folders))


def _names(folder: Path) -> tuple[set[str], list[str]]:
    """(files, folders) of a folder, without what is hidden, and without links."""
    files: set[str] = set()
    below: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    if entry.is_dir(follow_symlinks=False):
                        below.append(entry.name)
                    elif entry.is_file(follow_symlinks=False):
                        files.add(entry.name)
    except OSError:  # one that may not be entered shows nothing
        return files, []
    return files, sorted(below)


def _own(folder: Path, files: set[str]) -> Iterator[Place]:
    kind = Kind.RUN if _RUN in files else Kind.IMPORT if _IMPORT in files else None
    if kind:
        yield from _placed(folder, kind)
    if _COMPARISON in files and kind is None:
        yield from _placed(folder, Kind.COMPARISON)


def _placed(folder: Path, kind: Kind) -> Iterator[Place]:
    stamps = tuple(stamp_of(folder / name) for name in _STAMPED[kind])
    if stamps[0] is not None:
        yield Place(folder, kind, stamps)


def _others(folder: Path, files: set[str]) -> Iterator[Place]:
    for name in files:
        if Path(name).suffix.lower() in _SUFFIXES:
            stamp = stamp_of(folder / name)
            if stamp and 0 < stamp.size <= FILE_BYTES_MAX:
                yield Place(folder / name, Kind.FILE, (stamp,))
