"""Arrival times from the kernel, on the monotonic clock.

Linux stamps each received segment (SO_TIMESTAMPING, software receive; no privilege needed) and hands the stamp of
the last one read to ``recvmsg``. The stamps are CLOCK_REALTIME, so the offset to CLOCK_MONOTONIC is measured again
throughout a run; a stamp that cannot be true (before the read before, after now) means that the wall clock was
stepped: the offset is measured anew, and if that does not help the user-space clock is taken.
"""

import socket
import struct
import sys

from withstand import clock

_SO_TIMESTAMPING = 37
_RX_SOFTWARE_AND_SOFTWARE = (1 << 3) | (1 << 4)
ANCILLARY_BYTES = 96
_timespec = struct.Struct("qq").unpack_from
_PLAUSIBLE_AGE_NS = 5_000_000_000
_PLAUSIBLE_LEAD_NS = 100_000


def ask_for_stamps(sock: socket.socket) -> bool:
    """Whether the kernel will stamp what this socket receives."""
    if sys.platform != "linux" or sock.family == socket.AF_UNIX:
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _RX_SOFTWARE_AND_SOFTWARE)
    except OSError:
        return False
    return True


class StampClock:
    """Turns ancillary data into monotonic ns."""

    __slots__ = ("_keeper", "_offset_ns", "steps")

    def __init__(self) -> None:
        # The kernel begins to stamp a moment after the first socket asks; this one asks before the load does.
        self._keeper = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        ask_for_stamps(self._keeper)
        self.steps = 0
        self._offset_ns = 0
        self.measure()

    def measure(self) -> None:
        """Measure the offset again."""
        self._offset_ns, _ = clock.realtime_offset_ns()

    def stamp_ns(self, ancillary: list[tuple[int, int, bytes]], read_ns: int) -> int | None:
        """When the bytes read at ``read_ns`` arrived; None = the kernel did not say."""
        if not ancillary:
            return None
        seconds, nanoseconds = _timespec(ancillary[0][2])
        if not seconds:
            return None
        wall_ns: int = seconds * 1_000_000_000 + nanoseconds
        stamp_ns = wall_ns - self._offset_ns
        if not self._plausible(stamp_ns, read_ns):
            self.steps += 1
            self.measure()
            stamp_ns = wall_ns - self._offset_ns
            if not self._plausible(stamp_ns, read_ns):
                return None
        return min(stamp_ns, read_ns)

    @staticmethod
    def _plausible(stamp_ns: int, read_ns: int) -> bool:
        return -_PLAUSIBLE_LEAD_NS < read_ns - stamp_ns < _PLAUSIBLE_AGE_NS
