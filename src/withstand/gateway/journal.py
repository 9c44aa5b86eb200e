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
        self._second = 0
        self._at = ""
        """That second, as it is written."""

    def add(self, ending: Ending, cost_nusd: int | None) -> None:
        """One more line."""
        if self._descriptor is not None and len(self._lines) < _LINES_MAX:
            self._lines.append(line_of(ending, cost_nusd, self._now()))

    def _now(self) -> str:
        """Put into words once a second."""
        second = int(clock.wall_s())
        if second != self._second:
            self._second, self._at = second, clock.utc_iso(second * 1_000_000_000)
        return self._at

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


def line_of(ending: Ending, cost_nusd: int | None, at: str) -> bytes:
    """Times in ms, costs in USD."""
    told = {
        "at": at,
        "request_id": ending.request_id,
        "route": ending.route,
        "key": ending.key,
        "model": ending.model,
        "engine": ending.engine,
        "status": ending.status,
        "outcome": ending.outcome,  # a str
        "hop_ms": ending.hop_ns // 1000 / 1000,
        "queue_ms": None if ending.queue_ns is None else ending.queue_ns // 1000 / 1000,
        "first_byte_ms": None if ending.first_byte_ns is None else ending.first_byte_ns // 1000 / 1000,
        "total_ms": ending.total_ns // 1000 / 1000,
        "prompt_tokens": ending.prompt_tokens,
        "cached_tokens": ending.cached_tokens,
        "output_tokens": ending.output_tokens,
        "cost_usd": None if cost_nusd is None else cost_nusd / 1e9,
    }
    return msgspec.json.encode(told) + b"\n"


def _opened(path: str | None) -> int | None:
    if path is None:
        return None
    if path == "-":
        return sys.stdout.fileno()
    try:
        return os.open(Path(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    except OSError as e:
        raise UsageError(f"The log {path} cannot be written: {e.strerror}. Choose another in [log].") from None
