"""How far another machine's clock is from ours, by asking it the time (Cristian's algorithm).

The answer was read somewhere between our question and its arrival; taken for the middle, it is wrong by at most half
of the round trip, however unequal the two ways are. Of several rounds the shortest bounds the error best.
"""

from collections.abc import Callable

from withstand import clock
from withstand.record import ClockOffset

_ROUNDS = 24


def offset_of(before_ns: int, theirs_ns: int, after_ns: int) -> ClockOffset:
    """One round: ``theirs_ns`` was read between the other two. The error is rounded up."""
    middle_ns = (before_ns + after_ns) // 2
    return ClockOffset(offset_ns=theirs_ns - middle_ns, error_ns=(after_ns - before_ns + 1) // 2)


def measure(ask_ns: Callable[[], int]) -> ClockOffset:
    """The tightest of several rounds."""
    return min((_round(ask_ns) for _ in range(_ROUNDS)), key=lambda offset: offset.error_ns)


def _round(ask_ns: Callable[[], int]) -> ClockOffset:
    before_ns = clock.now_ns()
    theirs_ns = ask_ns()
    return offset_of(before_ns, theirs_ns, clock.now_ns())
