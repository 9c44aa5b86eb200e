"""What the supervisor itself notes in a service's log: that it starts, that it has ended and why."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from withstand import clock

_HOW = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK


def note(log: Path, what: str) -> None:
    """A line of its own, with the time. Where the service has put something else there, or the disk is full, none."""
    line = f"[withstand {clock.utc_iso(clock.anchor().wall_ns)}] {what}\n"
    with suppress(OSError):
        descriptor = os.open(log, _HOW, 0o644)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.write(descriptor, line.encode("utf-8", "replace"))
        finally:
            os.close(descriptor)
