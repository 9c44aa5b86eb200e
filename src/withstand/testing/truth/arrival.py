"""When a request's bytes arrived, by the kernel: a server that is kept from its core reads them later than that."""

import socket
import struct
import sys
from typing import Final

from withstand import clock

ANCILLARY_BYTES: Final = 128
_TIMESTAMPING: Final = 37  # SO_TIMESTAMPING, which Python does not name; also the type of what comes with the bytes
_SOFTWARE_RECEIVE: Final = (1 << 3) | (1 << 4)
_TIMESPEC: Final = struct.Struct("=qq")
_AGE_NS_MAX: Final = 60_000_000_000


def ask_for_stamps(sock: socket.socket) -> bool:
    """Whether the kernel will stamp what comes; what a listener asks for holds for its connections."""
    if sys.platform != "linux" or sock.family not in {socket.AF_INET, socket.AF_INET6}:
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, _TIMESTAMPING, _SOFTWARE_RECEIVE)
    except OSError:
        return False
    return True


def arrived_ns(ancillary: list[tuple[int, int, bytes]], now_ns: int) -> int | None:
    """The monotonic instant at which bytes that were read at ``now_ns`` arrived; None = the kernel did not say.

    Its stamps are on the wall clock, whose distance is measured for each: a stepped clock spoils one at most.
    """
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _TIMESTAMPING):
            seconds, rest_ns = _TIMESPEC.unpack_from(data)
            offset_ns, _ = clock.realtime_offset_ns(4)
            stamp_ns = seconds * 1_000_000_000 + rest_ns - offset_ns
            return min(stamp_ns, now_ns) if seconds and now_ns - stamp_ns < _AGE_NS_MAX else None
    return None
