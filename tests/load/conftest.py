"""What several tests of this folder want: the fixture ``drive``, and a kernel that stamps."""

from collections.abc import Iterator

import pytest

from driving import drive
from withstand import clock
from withstand.load.stamps import StampClock

__all__ = ["drive"]


@pytest.fixture(scope="module")
def stamping() -> Iterator[None]:
    """The kernel begins to stamp a moment after it was asked, and goes on as long as somebody asks."""
    keeper = StampClock()
    clock.sleep_s(0.1)
    yield
    keeper.close()
