"""Patience with an endpoint that is away for a moment: it is asked again until it is back, or away for too long."""

import contextlib
from collections.abc import Callable, Iterator

from withstand import clock
from withstand.errors import AwayError

LASTS_S = 30.0
_PAUSE_NS = 250_000_000

Meanwhile = Callable[[float], bool]
"""Works or sleeps for at most so many seconds; False = nobody wants the answer any more."""


class Patience:
    """Who has other work to do than to wait has it done meanwhile."""

    def __init__(self, lasts_s: float = LASTS_S, tell: Callable[[str], None] = lambda _: None) -> None:
        """``tell`` is told of each wait."""
        self._lasts_s = lasts_s
        self._tell = tell
        self._meanwhile: Meanwhile = _sleep

    @contextlib.contextmanager
    def meanwhile(self, work: Meanwhile) -> Iterator[None]:
        """As long as the context lasts, ``work`` is done instead of sleeping."""
        self._meanwhile = work
        try:
            yield
        finally:
            self._meanwhile = _sleep

    def ask(self, question: Callable[[], int]) -> int:
        """Its answer, at last.

        Raises:
            AwayError: nobody has answered, or nobody wants to know any more.
        """
        end_ns = clock.now_ns() + int(self._lasts_s * 1e9)
        told = False
        while True:
            try:
                return question()
            except AwayError as e:
                if clock.now_ns() >= end_ns:
                    raise AwayError(f"{e} It was asked again for {self._lasts_s:g} s.") from None
                if not told:
                    self._tell(f"{e} It is asked again, for {self._lasts_s:g} s at most.")
                told = True
                if not self._pause():
                    raise

    def _pause(self) -> bool:
        again_ns = clock.now_ns() + _PAUSE_NS
        while (left_ns := again_ns - clock.now_ns()) > 0:
            if not self._meanwhile(left_ns / 1e9):
                return False
        return True


def _sleep(seconds: float) -> bool:
    clock.sleep_s(seconds)
    return True
