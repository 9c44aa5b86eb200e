"""Plays a score: every write when it is due, never before the one ahead of it. And who may play at the same time."""

from collections import deque
from collections.abc import Callable

from withstand import clock
from withstand.testing.truth.clockwork import Clockwork
from withstand.testing.truth.score import End, Score, Write
from withstand.testing.truth.served import Entry


class Player:
    """One answer. ``put`` takes a write; ``ended`` is called once, when the last one has been taken by the kernel."""

    __slots__ = (
        "_clockwork",
        "_due_ns",
        "_put",
        "_start_ns",
        "_write",
        "alive",
        "ended",
        "entry",
        "exhausted",
        "score",
    )

    def __init__(
        self,
        clockwork: Clockwork,
        score: Score,
        entry: Entry | None,
        put: Callable[[Write, Entry | None], None],
        ended: Callable[[], None],
    ) -> None:
        self.score = score
        self.entry = entry
        self.ended = ended
        self.alive = True
        self.exhausted = False
        self._clockwork = clockwork
        self._put = put
        self._start_ns = self._due_ns = 0
        self._write: Write | None = None

    def start(self, start_ns: int) -> None:
        """The schedule's zero."""
        self._start_ns = self._due_ns = start_ns
        if self.entry is not None:
            self.entry.started_ns = start_ns
            self.entry.status = self.score.status
        self._next()

    def stop(self) -> None:
        """Nobody listens any more."""
        self.alive = False

    @property
    def freed_ns(self) -> int:
        """When the model it stands for was done: as scheduled, unless the client did not read."""
        blocked = self.entry is not None and self.entry.blocked_ns
        return clock.now_ns() if blocked or not self.exhausted else self._due_ns

    def _next(self) -> None:
        self._write = next(self.score.writes, None)
        if self._write is not None:
            self._due_ns = self._start_ns + self._write.at_ns
            self._clockwork.at(self._due_ns, self._step)
        elif self.score.end is not End.HANG:
            self.exhausted = True
            self.ended()

    def _step(self) -> None:
        if not self.alive or self._write is None:
            return
        if self.entry is not None:
            self.entry.late_ns_max = max(self.entry.late_ns_max, clock.now_ns() - self._due_ns)
        self._put(self._write, self.entry)
        if self.alive:
            self._next()


class Slots:
    """At most ``count`` players at a time, the others in order of arrival; None = all at once."""

    def __init__(self, count: int | None) -> None:
        self._count = count
        self._playing: set[Player] = set()
        self._waiting: deque[tuple[Player, int]] = deque()

    def __len__(self) -> int:
        """How many play."""
        return len(self._playing)

    def enter(self, player: Player, ready_ns: int) -> None:
        """Start it, now or when its turn comes."""
        if self._count is not None and len(self._playing) >= self._count:
            self._waiting.append((player, ready_ns))
            return
        self._playing.add(player)
        player.start(ready_ns)

    def leave(self, player: Player) -> None:
        """It has ended or was given up, perhaps before its turn; whoever is next begins when the slot became free."""
        if player not in self._playing:
            self._waiting = deque(entry for entry in self._waiting if entry[0] is not player)
            return
        self._playing.discard(player)
        if self._waiting:
            following, ready_ns = self._waiting.popleft()
            self.enter(following, max(ready_ns, player.freed_ns))
