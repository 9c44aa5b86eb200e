"""An open log has a bound: of one that has outgrown it the end is kept."""

import os
import stat
from contextlib import suppress

BYTES_MAX = 256 << 20
_KEPT_BYTES = 4 << 20


def cut(log: int, bytes_max: int = BYTES_MAX, kept_bytes: int = _KEPT_BYTES) -> None:
    """``log`` is a descriptor to read and append: whatever stands under its name by now is left alone.

    Who writes has opened it to append too, and so goes on at its new end; what comes in the same moment may be lost.
    """
    with suppress(OSError):  # it is looked at again soon
        told = os.fstat(log)
        if told.st_size <= bytes_max or not stat.S_ISREG(told.st_mode):
            return
        kept = os.pread(log, kept_bytes, told.st_size - kept_bytes)
        whole = kept.partition(b"\n")[2]
        if 2 * len(whole) >= len(kept):  # else it is the end of a line that has none, and better than nothing
            kept = whole
        os.ftruncate(log, 0)
        os.write(log, b"[withstand has cut %d bytes before this]\n" % (told.st_size - len(kept)) + kept)
