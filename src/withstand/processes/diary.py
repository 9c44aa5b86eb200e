"""What those who mind a program note in its log themselves: that it starts, that it has ended and why."""

import os
from contextlib import suppress

from withstand import clock


def note(log: int, what: str) -> None:
    """A line of its own, with the time, also behind one that has not ended; none where the disk is full."""
    line = f"[withstand {clock.utc_iso(clock.anchor().wall_ns)}] {what}\n"
    with suppress(OSError):
        last = os.pread(log, 1, max(0, os.fstat(log).st_size - 1))
        os.write(log, b"\n" * (last not in {b"", b"\n"}) + line.encode("utf-8", "replace"))
