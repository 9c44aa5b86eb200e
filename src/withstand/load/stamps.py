"""Arrival times from the kernel, on the monotonic clock.

Linux stamps each received segment (SO_TIMESTAMPING, software receive; no privilege needed) and hands the stamp of
the last one read to ``recvmsg``. The stamps are CLOCK_REALTIME, so the offset to CLOCK_MONOTONIC is measured again
throughout a run. A stamp that is after now, or old, may mean that the wall clock was stepped: the offset is measured
anew, and if the stamp still cannot be true the user-space clock is taken.
"""

import socket
import struct
import sys
from array import array
from contextlib import suppress

from withstand import clock
from withstand.load.lag import FINE_BITS, LagHistogram

_SO_TIMESTAMPING = 37
_RX_SOFTWARE_AND_SOFTWARE = (1 << 3) | (1 << 4)
ANCILLARY_BYTES = 96
_timespec = struct.Struct("qq").unpack_from
_SECOND_NS = 1_000_000_000
_EVERYDAY_AGE_NS = 2_000_000
"""Who reads later than this after the arrival first looks whether the wall clock was set."""
_PLAUSIBLE_AGE_NS = 5_000_000_000
_PLAUSIBLE_LEAD_NS = 100_000
_STEP_NS = 500_000
"""Between two measurements a clock that is only slewed moves by less."""


def kernel_may_stamp(family: int) -> bool:
    """Whether the kernel stamps what sockets of this family receive, if it is asked."""
    return sys.platform == "linux" and family != socket.AF_UNIX


def ask_for_stamps(sock: socket.socket) -> None:
    """Have the kernel stamp what this socket receives; where it does not, reads come without a stamp."""
    if kernel_may_stamp(sock.family):
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _RX_SOFTWARE_AND_SOFTWARE)


class StampClock:
    """Turns ancillary data into monotonic ns."""

    __slots__ = ("_ages", "_first_ns", "_keeper", "ages", "drift_ns", "offset", "steps", "width_ns")

    def __init__(self, ages: LagHistogram | None = None) -> None:
        self._ages = ages or LagHistogram()
        self.ages = self._ages.fine
        """How many stamps were so old, by the microsecond."""
        # The kernel begins to stamp a moment after the first socket asks; this one asks before the load does.
        self._keeper = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        ask_for_stamps(self._keeper)
        self._first_ns, self.width_ns = clock.realtime_offset_ns()
        self.offset = array("q", [self._first_ns])
        """One number: wall clock minus monotonic clock, ns."""
        self.steps = 0
        """How often the wall clock was set."""
        self.drift_ns = 0
        """How far the two clocks have gone apart since the start, without the steps."""

    def close(self) -> None:
        """Give the descriptor back."""
        self._keeper.close()

    def measure(self) -> None:
        """Measure the offset again. ``width_ns`` = its uncertainty, at the worst of all measurements."""
        offset_ns, width_ns = clock.realtime_offset_ns()
        moved_ns = offset_ns - self.offset[0]
        self.offset[0] = offset_ns
        if abs(moved_ns) > _STEP_NS:
            self.steps += 1
            self._first_ns += moved_ns
        self.drift_ns = offset_ns - self._first_ns
        self.width_ns = max(self.width_ns, width_ns)

    def stamp_ns(self, ancillary: list[tuple[int, int, bytes]], read_ns: int) -> int | None:
        """When the bytes read at ``read_ns`` arrived; None = the kernel did not say. Its age is counted."""
        if not ancillary:
            return None
        seconds, nanoseconds = _timespec(ancillary[0][2])
        wall_ns: int = seconds * _SECOND_NS + nanoseconds
        stamp_ns = wall_ns - self.offset[0]
        age_ns = read_ns - stamp_ns
        if 0 <= age_ns < _EVERYDAY_AGE_NS:
            self.ages[age_ns >> FINE_BITS] += 1
            return stamp_ns
        return self.settled_ns(wall_ns, read_ns)

    def settled_ns(self, wall_ns: int, read_ns: int) -> int | None:
        """The same of a stamp that is not of everyday."""
        settled_ns = self._unlikely_ns(wall_ns, read_ns) if wall_ns >= _SECOND_NS else None
        if settled_ns is not None:
            self._ages.add(read_ns - settled_ns)
        return settled_ns

    def _unlikely_ns(self, wall_ns: int, read_ns: int) -> int | None:
        """A stamp from the future, or an old one: we were slow, or the wall clock was set, before it or after it."""
        before_ns = self.offset[0]
        glance_ns, _ = clock.realtime_offset_ns(tries=1)
        if abs(glance_ns - before_ns) <= _STEP_NS and read_ns >= wall_ns - before_ns:
            return wall_ns - before_ns
        self.measure()
        ages_ns = (read_ns - wall_ns + offset_ns for offset_ns in (self.offset[0], before_ns))
        age_ns = min((age for age in ages_ns if -_PLAUSIBLE_LEAD_NS < age < _PLAUSIBLE_AGE_NS), key=abs, default=None)
        return None if age_ns is None else read_ns - max(0, age_ns)
