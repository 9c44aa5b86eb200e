"""Signals that end a run: which are heard, and that all is as before when it is over."""

import os
import signal
from collections.abc import Iterator

import pytest

from withstand.load.interrupts import Interrupts, ended_as_by_ctrl_c


@pytest.fixture(autouse=True)
def no_nohup() -> Iterator[None]:
    """Whoever has started the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def test_who_was_started_by_nohup_outlives_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_as_by_ctrl_c(), Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interrupts.count == 0
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(("number", "counts"), [(signal.SIGINT, 1), (signal.SIGHUP, 1), (signal.SIGTERM, 2)])
def test_in_a_stage_they_are_counted(number: signal.Signals, counts: int) -> None:
    before = signal.getsignal(number)
    with Interrupts() as interrupts:
        os.kill(os.getpid(), number)
        assert interrupts.count == counts
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_outside_of_one_they_are_ctrl_c(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), ended_as_by_ctrl_c():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) == before
