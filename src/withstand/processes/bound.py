"""A log has a bound: of one that has outgrown it the end is kept."""

from contextlib import suppress
from pathlib import Path

BYTES_MAX = 256 << 20
_KEPT_BYTES = 4 << 20


def bound(log_file: Path, bytes_max: int = BYTES_MAX, kept_bytes: int = _KEPT_BYTES) -> None:
    """Who writes has opened it to append, and so goes on at its new end; what comes in the same moment may be lost."""
    with suppress(OSError):  # it is looked at again soon
        size = log_file.stat().st_size
        if size <= bytes_max:
            return
        with log_file.open("r+b") as log:
            log.seek(size - kept_bytes)
            kept = log.read(kept_bytes).partition(b"\n")[2]
            log.truncate(0)
        with log_file.open("ab") as log:
            log.write(b"[withstand has cut %d bytes before this]\n" % (size - len(kept)) + kept)
