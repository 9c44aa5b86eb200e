"""The access log: one JSON object a line, written many at a time, so that no request waits for the disk."""

import contextlib
import os
import sys
from pathlib import Path

import msgspec

from withstand import clock
from withstand.errors import UsageError
from withstand.gateway.counts import Ending

_LINES_MAX = 100_000
"""What may wait to be written; the rest is lost rather than the gateway's memory."""


class Journal:
    """``path`` None = nobody wants to know; ``-`` = stdout."""

    def __init__(self, path: str | None) -> None:
        self._descriptor = _opened(path)
        self._lines: list[bytes] = []

    def add(self, ending: Ending) -> None:
        """One more line."""
        if self._descriptor is not None and len(self._lines) < _LINES_MAX:
            self._lines.append(line_of(ending, clock.utc_iso(round(clock.wall_s() * 1e9))))

    def close(self) -> None:
        """All is written; the file may be moved away."""
        self.flush()
        if self._descriptor is not None and self._descriptor != sys.stdout.fileno():
            os.close(self._descriptor)
        self._descriptor = None

    def flush(self) -> None:
        """Hand over what there is to the system."""
        if self._lines and self._descriptor is not None:
            lines = b"".join(self._lines)
            self._lines.clear()
            with contextlib.suppress(OSError):  # a full disk takes the log, not the service
                written = os.write(self._descriptor, lines)
                if written < len(lines):
                    self._lines.append(lines[written:])


def line_of(ending: Ending, at: str) -> bytes:
    """Times in ms."""
    told = {
        "at": at,
        "request_id": ending.request_id,
        "route": ending.route,
        "key": ending.key,
        "model": ending.model,
        "engine": ending.engine,
        "status": ending.status,
        "outcome": ending.outcome.value,
        "hop_ms": _ms(ending.hop_ns),
        "queue_ms": _ms(ending.queue_ns),
        "first_byte_ms": _ms(ending.first_byte_ns),
        "total_ms": _ms(ending.total_ns),
        "output_tokens": ending.output_tokens,
    }
    return msgspec.json.encode(told) + b"\n"


def _ms(ns: int | None) -> float | None:
    return None if ns is None else round(ns / 1e6, 3)


def _opened(path: str | None) -> int | None:
    if path is None:
        return None
    if path == "-":
        return sys.stdout.fileno()
    try:
        return os.open(Path(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    except OSError as e:
        raise UsageError(f"The log {path} cannot be written: {e.strerror}. Choose another in [log].") from None
