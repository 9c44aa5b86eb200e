"""Ctrl-C while a stage runs: the first drains, the second stops at once. SIGHUP is as Ctrl-C; SIGTERM stops at once.

Who sends SIGTERM (systemd, Kubernetes, a CI) kills some seconds later, and until then the report must be written.
"""

import signal
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Counts them instead of raising, as long as the context lasts."""

    def __init__(self) -> None:
        self.count = 0
        """Of Ctrl-C; SIGTERM counts as two."""
        self._before: dict[signal.Signals, Any] = {}

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.count += 2 if number == signal.SIGTERM else 1

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
