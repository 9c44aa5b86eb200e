"""The whole self-test: every case played and judged, and how exact the times were."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from withstand import clock
from withstand.record import Clock, Status
from withstand.testing.selftest.cases import Case
from withstand.testing.selftest.judge import TOLERANCE_MS, Judged, judged
from withstand.testing.selftest.play import Played, play
from withstand.testing.selftest.timing import Timing
from withstand.testing.truth.right import Times, times_of

_KNOWN_SHARE_MIN = 0.5


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    clock: Clock
    """Who stamped the arrivals; the tolerance depends on it."""
    tolerance_ms: float
    answers: int
    """To each case."""
    took_s: float
    cases: tuple[Judged, ...]

    @property
    def right(self) -> int:
        """Cases that are right."""
        return sum(case.ok is True for case in self.cases)

    @property
    def unproved(self) -> int:
        """Cases of which the machine let nothing be said."""
        return sum(case.ok is None for case in self.cases)

    @property
    def ok(self) -> bool:
        """Whether all is right, and enough of the times were seen to say so."""
        return self.right == len(self.cases) and self.seen

    @property
    def seen(self) -> bool:
        """Whether at least half of the gaps between events were seen one by one."""
        return self.known_gaps >= _KNOWN_SHARE_MIN * self.gaps

    @property
    def known_gaps(self) -> int:
        """Gaps between events whose both ends have a stamp of their own."""
        return sum(one.known_gaps for one in self._timings())

    @property
    def gaps(self) -> int:
        """Gaps between events that left apart."""
        return sum(one.gaps for one in self._timings())

    def errors_ms(self, name: str) -> Times | None:
        """How far one kind of time was off, over the answers."""
        return times_of([one.error_ms(name) for one in self._timings() if name in one.values])

    def _timings(self) -> list[Timing]:
        return [one for case in self.cases for one in case.timings]


def prove(cases: Sequence[Case], answers: int) -> Proof:
    """Play and judge.

    Raises:
        MeasureError: the client did not come to its end.
    """
    began_ns = clock.now_ns()
    with tempfile.TemporaryDirectory(prefix="selftest-") as folder:
        played = play(cases, answers, Path(folder))
    stamped_by = _clock_of(played)
    tolerance_ms = TOLERANCE_MS[stamped_by]
    return Proof(
        clock=stamped_by,
        tolerance_ms=tolerance_ms,
        answers=answers,
        took_s=(clock.now_ns() - began_ns) / 1e9,
        cases=tuple(judged(one, tolerance_ms) for one in played),
    )


def _clock_of(played: Sequence[Played]) -> Clock:
    """The kernel, unless it missed a good answer."""
    good = [p.record for one in played for p in one.pairs if p.record.status is Status.OK]
    return Clock.KERNEL if all(record.clock is Clock.KERNEL for record in good) else Clock.USER
