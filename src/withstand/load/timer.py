"""An alarm at an absolute monotonic instant, as a file descriptor for the poller (Linux's timerfd).

Polling timeouts are whole milliseconds; a timerfd is not. Where there is none, ``Alarm.open`` says None and the
loop falls back to the timeout.
"""

import ctypes
import os
import struct
import sys

_CLOCK_MONOTONIC = 1
_NONBLOCK_CLOEXEC = 0o4000 | 0o2000000
_ABSOLUTE = 1
_UNSET = -1
_itimerspec = struct.Struct("qqqq")


class Alarm:
    """One timerfd."""

    def __init__(self, libc: ctypes.CDLL, fd: int) -> None:
        self._libc = libc
        self.fd = fd
        self._at_ns = _UNSET

    @classmethod
    def open(cls) -> "Alarm | None":
        """A new alarm, or None where the system has no such thing."""
        if sys.platform != "linux":
            return None
        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCK_CLOEXEC)
        return cls(libc, fd) if fd >= 0 else None

    def set(self, at_ns: int) -> None:
        """Ring at this instant, at once if it has passed; replaces an earlier setting."""
        if at_ns == self._at_ns:
            return
        self._at_ns = at_ns
        at_ns = max(at_ns, 1)
        spec = _itimerspec.pack(0, 0, at_ns // 1_000_000_000, at_ns % 1_000_000_000)
        self._libc.timerfd_settime(self.fd, _ABSOLUTE, spec, None)

    def clear(self, _events: int = 0) -> None:
        """Take note that it rang."""
        self._at_ns = _UNSET
        try:
            os.read(self.fd, 8)
        except BlockingIOError:
            return

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.fd)
