"""The records of a run that goes on, taken in as far as there is time: the rest is counted, unread.

A look may come long after what it finds was over: what is not read is counted at the instants that stand in the lines.
"""

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path

from withstand import clock
from withstand.app.tail import Tail, record_of
from withstand.metrics.live import LiveStage
from withstand.record import Record, Status
from withstand.runs import RunFolder

_NEAR_BYTES = 1 << 20
"""Who begins to look in the middle reads so much of the files' ends, all of them together."""
_LOOK_BYTES = 1 << 23
_PAST_BYTES = 1 << 22
_FILES_MAX = 1024
_FIRST_GUESS_NS = 50_000
_OK = b'"status":"ok"'
_END = re.compile(rb',"end_ns":(\d{1,18})[,}]')
_INSTANTS_MAX = 1024
_PASSES = 8
"""Lines are read in so many passes over all of them, so that a look that is cut short has seen of every time."""


class RecordsNow:
    """All workers' files of a folder."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        sizes = {path: _size(path) for path in self._files()}
        near = _NEAR_BYTES // max(1, len(sizes))
        self._tails = {path: Tail(path, max(0, size - near)) for path, size in sizes.items()}
        self._past = [(Tail(path), tail.place) for path, tail in self._tails.items() if tail.place]
        self.is_late = bool(self._past)
        """Something was written that is not read any more."""
        self._line_ns = float(_FIRST_GUESS_NS)
        """How long a record takes, by what was seen."""

    def _files(self) -> list[Path]:
        return self._folder.worker_files()[:_FILES_MAX]

    def read(self, live: LiveStage, now_ns: int, until_ns: int) -> None:
        """What is new goes into a stage, until an instant of our clock; what is left over is counted."""
        files = self._files()
        most = _LOOK_BYTES // max(1, len(files))
        new = b"".join(self._tails.setdefault(path, Tail(path)).read(most) for path in files)
        if new:
            self._take(new, live, now_ns, until_ns)
        self._count_past(live, until_ns)

    def _take(self, new: bytes, live: LiveStage, now_ns: int, until_ns: int) -> None:
        """Every n-th record of the stage, so that there is time for all that is read."""
        mark = _of_stage(live.index)
        lines = [line for line in new.splitlines() if mark in line]
        began_ns = clock.now_ns()
        every = max(1, -int(-len(lines) * self._line_ns // max(1, until_ns - began_ns)))
        records: list[Record] = []
        read = 0
        for line in _in_passes(lines[::every]):
            read += 1
            record = record_of(line)
            if record and record.stage == live.index:
                records.append(record)
                _add(live, record, now_ns)
            if clock.now_ns() > until_ns:
                break
        if read:
            self._line_ns = max(1_000.0, (clock.now_ns() - began_ns) / read)
        if read < len(lines):
            _count_unread(live, lines, records, now_ns)

    def _count_past(self, live: LiveStage, until_ns: int) -> None:
        """A few MiB at a time of what was written before we came."""
        while self._past and clock.now_ns() < until_ns:
            tail, end = self._past[-1]
            data = tail.read(min(_PAST_BYTES, end - tail.place))
            live.done_before += data.count(_of_stage(live.index))
            if not data or tail.place >= end:
                self._past.pop()


def _in_passes(lines: Sequence[bytes]) -> list[bytes]:
    """The first one first, for a stage begins with it."""
    return [line for start in range(_PASSES) for line in lines[start::_PASSES]]


def _count_unread(live: LiveStage, lines: Sequence[bytes], records: Sequence[Record], now_ns: int) -> None:
    """As evenly over time as all lines are."""
    unread = len(lines) - len(records)
    ended = sum(_OK in line for line in lines) - sum(record.status is Status.OK for record in records)
    ended = min(unread, max(0, ended))
    ends = map(_END.search, lines[:: -(-len(lines) // _INSTANTS_MAX)])
    instants = sorted(int(end[1]) for end in ends if end) or [now_ns]
    for place, instant_ns in enumerate(instants):
        good, failed = _part(ended, place, len(instants)), _part(unread - ended, place, len(instants))
        live.add_unread(good, failed, min(instant_ns, now_ns))


def _part(whole: int, place: int, parts: int) -> int:
    """One of so many nearly equal parts, which are the whole together."""
    return whole * (place + 1) // parts - whole * place // parts


def _of_stage(index: int) -> bytes:
    """As records are written; in a text a quotation mark has a backslash before it."""
    return b'"stage":%d,' % index


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _add(live: LiveStage, record: Record, now_ns: int) -> None:
    """A stranger's record may hold numbers with which nothing can be reckoned."""
    with contextlib.suppress(ArithmeticError):
        live.add(record, now_ns)
