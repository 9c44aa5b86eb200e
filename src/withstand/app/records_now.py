"""The records of a run that goes on, taken in as far as there is time: the rest is counted, unread."""

import contextlib
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
        """Every n-th record, so that there is time for all that is read."""
        lines = new.splitlines()
        began_ns = clock.now_ns()
        every = max(1, -int(-len(lines) * self._line_ns // max(1, until_ns - began_ns)))
        read = ended = total = 0
        for line in lines[::every]:
            read += 1
            record = record_of(line)
            if record and record.stage == live.index:
                total += 1
                ended += record.status is Status.OK
                _add(live, record, now_ns)
            if clock.now_ns() > until_ns:
                break
        self._line_ns = max(1_000.0, (clock.now_ns() - began_ns) / read)
        if read < len(lines):
            all_total, all_ended = new.count(_of_stage(live.index)), new.count(_OK)
            unread = max(0, all_total - total)
            unread_ended = min(unread, max(0, all_ended - ended))
            live.add_unread(unread_ended, unread - unread_ended, now_ns)

    def _count_past(self, live: LiveStage, until_ns: int) -> None:
        """A few MiB at a time of what was written before we came."""
        while self._past and clock.now_ns() < until_ns:
            tail, end = self._past[-1]
            data = tail.read(min(_PAST_BYTES, end - tail.place))
            live.done_before += data.count(_of_stage(live.index))
            if not data or tail.place >= end:
                self._past.pop()


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
