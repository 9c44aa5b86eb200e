"""What a process that failed has said, and how it ended, in words: its log's end, and the line that tells."""

import os
import re
import signal
from pathlib import Path

_LOG_TAIL_BYTES = 16_384
_LOG_LINE_CHARS = 300
_BY_A_KEEPER = 128
"""A keeper, as a shell does, ends with this and the signal's number."""
_TELLS = re.compile(r"[^\W_]")
_DEADLY = {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM}


def killer(code: int | None) -> signal.Signals | None:
    """The signal that ended it, if one did."""
    if code is None or code >= 0:
        return next((number for number in _DEADLY if code == _BY_A_KEEPER + number), None)
    return signal.Signals(-code)


def ending(code: int | None) -> str:
    """How it ended; nothing for one that has not."""
    if code is None:
        return ""
    number = killer(code)
    if number is None:
        return f" (exit code {code})"
    return f" (killed by {number.name}{', perhaps for want of memory' if number is signal.SIGKILL else ''})"


def tail(log: Path | int, start: int = 0) -> str:
    """The end of what was written from ``start`` on, of a log that is open or not; nothing of what is no file."""
    try:
        if isinstance(log, int):
            return _tail(log, start)
        descriptor = os.open(log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe is not waited for
        try:
            return _tail(descriptor, start)
        finally:
            os.close(descriptor)
    except OSError:
        return ""


def _tail(log: int, start: int) -> str:
    size = os.fstat(log).st_size
    at = max(start if start <= size else 0, size - _LOG_TAIL_BYTES)  # it may have been cut meanwhile
    return os.pread(log, _LOG_TAIL_BYTES, at).decode("utf-8", "replace")


def said_reason(log: str, pattern: str | None) -> str:
    """The last that fits the pattern (of its groups the one that does), else the last line with a letter or digit."""
    found = re.finditer(pattern, log) if pattern else ()
    said = [match[match.lastindex or 0] for match in found] or [line for line in log.split("\n") if _TELLS.search(line)]
    return said[-1].strip()[:_LOG_LINE_CHARS] if said else ""
