"""What holds for every test."""

import signal

import pytest
from hypothesis import settings

settings.register_profile("no clock", deadline=None)
settings.load_profile("no clock")  # another's work on this machine is no failure


@pytest.fixture(scope="session", autouse=True)
def _interrupts_are_heard() -> None:
    """A shell starts what it puts into the background with SIGINT ignored, and our children would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
