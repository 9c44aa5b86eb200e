"""All that lies below the folder that is shown: read once, and again only where something has changed.

A look takes a bounded time; what it did not come to is left to the next one, and counted. Only what a look has found
has an id, so no path from outside is ever followed.
"""

import hashlib
import os
import threading
from pathlib import Path

import msgspec

from withstand import clock
from withstand.errors import StorageError, UsageError, WithstandError
from withstand.files import spelled
from withstand.runs import RunState, Writer, still_runs
from withstand.ui.compared import compared_of
from withstand.ui.entry import Detail, Entry, Kind, State, shown
from withstand.ui.ours import detail_of, entry_of, manifest_at
from withstand.ui.reach import OutOfReachError
from withstand.ui.walk import Place, walk

_LOOK_NS = 500_000_000
_FRESH_NS = 400_000_000
"""Several readers at a time are answered with one look."""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """What the page lists."""

    folder: str
    entries: tuple[Entry, ...]
    unread: int
    """Places that a next look will come to."""
    cut: bool


class _Kept(msgspec.Struct, frozen=True):
    """What was found when a place had these stamps; None = nothing that was measured."""

    place: Place
    entry: Entry | None
    writer: Writer | None = None
    """Of a run that has not ended: it may have died since, or has been gone on with."""
    alive: bool = False

    def holds(self, place: Place) -> bool:
        return self.place == place and (self.writer is None or still_runs(self.writer) == self.alive)


class Library:
    """For many threads."""

    def __init__(self, folder: Path) -> None:
        self.root = Path(os.path.realpath(folder))
        self._shown = spelled(folder)
        self._kept: dict[str, _Kept] = {}
        self._lock = threading.Lock()
        self._listing: Listing | None = None
        self._looked_ns = 0

    def look(self) -> Listing:
        """As it is now, the newest first."""
        with self._lock:
            fresh = clock.now_ns() - self._looked_ns < _FRESH_NS
            if self._listing is None or not fresh or self._listing.unread:
                self._listing = self._look()
                self._looked_ns = clock.now_ns()
            return self._listing

    def detail(self, id_: str) -> Detail | None:
        """What stands behind a line; None = there is no such line."""
        kept = self._current(id_)
        if kept is None or kept.entry is None:
            return None
        if kept.entry.state is State.DAMAGED:
            return Detail(entry=kept.entry)
        try:
            return self._detail(kept.place, self._about(id_, kept.place)) or Detail(entry=kept.entry)
        except (OutOfReachError, WithstandError):  # it has just been damaged; the next look says so
            return Detail(entry=kept.entry)

    def _detail(self, place: Place, about: Entry) -> Detail | None:
        if place.kind is Kind.RUN:
            return detail_of(place, self.root, about)
        from withstand.ui.others import file_at, import_at  # noqa: PLC0415  everybody's formats: many have none

        if place.kind is Kind.IMPORT:
            return import_at(place, self.root, about)
        return file_at(place, self.root, about) if place.kind is Kind.FILE else None

    def place(self, id_: str) -> Place | None:
        """Where a line's folder or file is."""
        kept = self._current(id_)
        return kept.place if kept and kept.entry else None

    def _current(self, id_: str) -> _Kept | None:
        self.look()
        return self._kept.get(id_)

    def _look(self) -> Listing:
        walked = walk(self.root)
        until_ns = clock.now_ns() + _LOOK_NS
        kept: dict[str, _Kept] = {}
        unread = 0
        for place in walked.places:
            id_ = self._id(place.path)
            old = self._kept.get(id_)
            if old and old.holds(place):
                kept[id_] = old
            elif clock.now_ns() < until_ns:
                kept[id_] = self._read(id_, place)
            else:
                unread += 1
        self._kept = kept
        entries = [one.entry for one in kept.values() if one.entry]
        entries.sort(key=lambda entry: (-entry.at_s, entry.name))
        return Listing(folder=shown(self._shown) or "", entries=tuple(entries), unread=unread, cut=walked.cut)

    def _id(self, path: Path) -> str:
        return hashlib.blake2b(os.fsencode(path.relative_to(self.root)), digest_size=9).hexdigest()

    def _read(self, id_: str, place: Place) -> _Kept:
        about = self._about(id_, place)
        try:
            return self._opened(place, about)
        except UsageError:  # a run.json of another tool
            return _Kept(place, None)
        except (OutOfReachError, StorageError) as e:
            return _Kept(place, _damaged(about, str(e)))
        except Exception:  # noqa: BLE001  a stranger's folder must not hide the others, whatever is in it
            return _Kept(place, _damaged(about, "It holds what cannot be understood."))

    def _opened(self, place: Place, about: Entry) -> _Kept:
        if place.kind is Kind.COMPARISON:
            return _Kept(place, compared_of(place, self.root, about))
        if place.kind is not Kind.RUN:
            detail = self._detail(place, about)
            return _Kept(place, detail.entry if detail else None)
        manifest = manifest_at(place, self.root)
        writer = manifest.writer if manifest.state is RunState.RUNNING else None
        alive = writer is not None and still_runs(writer)
        return _Kept(place, entry_of(place, self.root, manifest, about), writer, alive)

    def _about(self, id_: str, place: Place) -> Entry:
        """What its place alone tells."""
        name = spelled(place.path.relative_to(self.root)) if place.path != self.root else spelled(self.root.name)
        return Entry(
            id=id_,
            name=shown(name) or "",
            kind=place.kind,
            state=State.DONE,
            at_s=place.stamp.mtime_ns / 1e9,
            block_of=self._id(place.block_of) if place.block_of else None,
            page=place.page,
            board=place.board,
        )


def _damaged(about: Entry, why: str) -> Entry:
    return msgspec.structs.replace(about, state=State.DAMAGED, why=shown(why))
