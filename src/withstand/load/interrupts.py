"""Ctrl-C while a stage runs: the first drains, the second stops at once. SIGHUP is as Ctrl-C; SIGTERM stops at once.

Between stages each of them is Ctrl-C. Who sends SIGTERM (systemd, Kubernetes, a CI) kills some seconds later, and until
then the report must be written.
"""

import contextlib
import signal
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, TracebackType
from typing import Any, Self

Handler = Callable[[int, FrameType | None], None]
Handlers = dict[signal.Signals, Any]
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Counts them instead of raising, as long as the context lasts."""

    def __init__(self) -> None:
        self.count = 0
        """Of Ctrl-C; SIGTERM counts as two."""
        self._before: Handlers = {}

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.count += 2 if number == signal.SIGTERM else 1

    def __enter__(self) -> Self:
        self._before = _heard(_SIGNALS, self._on_signal)
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        _restore(self._before)


@contextlib.contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Whoever ends us from outside raises ``KeyboardInterrupt``, so that the folder says so and things are put away."""
    before = _heard((signal.SIGTERM, signal.SIGHUP), _raise)
    try:
        yield
    finally:
        _restore(before)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _heard(numbers: Iterable[signal.Signals], handler: Handler) -> Handlers:
    """What heard them before. Who was started by ``nohup`` is not to hear that its terminal was closed."""
    heard = [number for number in numbers if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in heard}


def _restore(before: Handlers) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)
