"""Looks at sources again and again and hands on what it sees. It knows neither HTTP nor files.

Each source has a thread of its own: one that hangs keeps nobody waiting.

Its cost is bounded: a source that takes long to answer is asked seldom, so that looking takes at most a tenth of the
time; where there is nothing to see, it is looked at no more, or ten times as seldom.
"""

import math
import threading
from collections.abc import Callable, Iterable, Mapping

import msgspec

from withstand import clock
from withstand.record import Sample, Seen

_COST_SHARE = 0.1
_SELDOM = 10


class Sight(msgspec.Struct, frozen=True):
    """What a source said of itself."""

    source: str
    values: Mapping[Seen, float]
    engine: str | None = None


class NothingThereError(Exception):
    """The source will never tell anything."""


Source = Callable[[], Iterable[Sight]]
"""Looks once. Nothing seen = perhaps another time."""


class Lookout:
    """``emit`` is called from several threads, with a sample each time."""

    def __init__(
        self, sources: Iterable[Source], interval_s: float, epoch_ns: int, emit: Callable[[Sample], None]
    ) -> None:
        self._interval_s = interval_s
        self._epoch_ns = epoch_ns
        self._emit = emit
        self._watchers = [_Watcher(self, source) for source in sources]

    def start(self) -> None:
        """Begin to look; the threads end with the process."""
        for watcher in self._watchers:
            watcher.start()

    def look_now(self, patience_s: float) -> bool:
        """Have every source looked at once more; False = not all were within the time given."""
        for watcher in self._watchers:
            watcher.hurry()
        until_ns = clock.now_ns() + int(patience_s * 1e9)
        return all(watcher.wait(until_ns) for watcher in self._watchers)

    def look(self, source: Source) -> float:
        """Look at one; the seconds until it may be looked at again."""
        before_ns = clock.now_ns()
        sights = list(source())
        after_ns = clock.now_ns()
        at_ns = (before_ns + after_ns) // 2 - self._epoch_ns
        for sight in sights:
            if sight.values:
                self._emit(Sample(at_ns=at_ns, source=sight.source, engine=sight.engine, values=dict(sight.values)))
        seldom = 1 if any(sight.values for sight in sights) else _SELDOM
        return max(self._interval_s * seldom, (after_ns - before_ns) / 1e9 / _COST_SHARE)


class _Watcher(threading.Thread):
    """One source's thread. Looks are numbered by what was asked for: an answer to an older question is none."""

    def __init__(self, lookout: Lookout, source: Source) -> None:
        super().__init__(daemon=True)
        self._lookout = lookout
        self._source = source
        self._changed = threading.Condition()
        self._asked = 1
        self._answered: float = 0

    def run(self) -> None:
        """Until there is nothing to see."""
        try:
            while True:
                with self._changed:
                    turn = self._asked
                pause_s = self._lookout.look(self._source)
                self._answer(turn)
                self._rest(turn, pause_s)
        except NothingThereError:
            self._answer(math.inf)

    def _rest(self, turn: int, pause_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._asked > turn, pause_s)

    def _answer(self, turn: float) -> None:
        with self._changed:
            self._answered = turn
            self._changed.notify_all()

    def hurry(self) -> None:
        """Look at once."""
        with self._changed:
            self._asked += 1
            self._changed.notify_all()

    def wait(self, until_ns: int) -> bool:
        """Whether it has looked, since it was last hurried, by then."""
        with self._changed:
            left_s = max(0.0, (until_ns - clock.now_ns()) / 1e9)
            return self._changed.wait_for(lambda: self._answered >= self._asked, left_s)
