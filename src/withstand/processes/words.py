"""What a process that failed has said, and how it ended, in words: its log's end, and the line that tells."""

import os
import re
import signal
from pathlib import Path

_LOG_TAIL_BYTES = 16_384
_LOG_LINE_CHARS = 300


def ending(code: int | None) -> str:
    """How it ended; nothing for one that has not."""
    match code:
        case None:
            return ""
        case -9 | 137:
            return " (killed by SIGKILL, perhaps for want of memory)"
        case code if code < 0:
            return f" (killed by {signal.Signals(-code).name})"
        case _:
            return f" (exit code {code})"


def tail(log_file: Path, start: int = 0) -> str:
    """The end of what was written from ``start`` on."""
    with log_file.open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(start, size - _LOG_TAIL_BYTES))
        return log.read().decode("utf-8", "replace")


def said_reason(log: str, pattern: str | None) -> str:
    """The last that fits the pattern, else the last line that is not empty."""
    said = re.findall(pattern, log) if pattern else []
    said = said or [line for line in log.split("\n") if line.strip()]
    return said[-1].strip()[:_LOG_LINE_CHARS] if said else ""
