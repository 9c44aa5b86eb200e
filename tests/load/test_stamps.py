"""Kernel stamps on the monotonic clock, also when the wall clock drifts or is set in the middle of a run."""

import struct
from typing import Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand import clock
from withstand.load.stamps import StampClock

_SECOND = 1_000_000_000
_EPOCH_NS = 1_700_000_000 * _SECOND


class Clocks:
    """Both clocks of a machine, in the test's hands, and the stamps made with them."""

    def __init__(self) -> None:
        self.monotonic_ns = 1_000 * _SECOND
        self.offset_ns = _EPOCH_NS
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(clock, "realtime_offset_ns", lambda tries=16: (self.offset_ns, 100 + tries))
        self.stamps = StampClock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stamps.close()
        self._patch.undo()

    def arrival(self) -> list[tuple[int, int, bytes]]:
        """What the kernel says of bytes that arrive now."""
        wall_ns = self.monotonic_ns + self.offset_ns
        return [(1, 37, struct.pack("qqqqqq", wall_ns // _SECOND, wall_ns % _SECOND, 0, 0, 0, 0))]


steps = st.one_of(st.integers(-3600 * _SECOND, 3600 * _SECOND), st.integers(-20_000_000, 20_000_000))


@given(step_ns=steps, lag_ns=st.integers(0, 3_000_000), stepped_after=st.booleans())
def test_a_step_of_the_wall_clock_moves_no_stamp_far(step_ns: int, lag_ns: int, *, stepped_after: bool) -> None:
    """Until it is discovered, a step can hide in an everyday lag, and no larger one can."""
    with Clocks() as clocks:
        clocks.offset_ns += 0 if stepped_after else step_ns
        true_ns, ancillary = clocks.monotonic_ns, clocks.arrival()
        clocks.offset_ns += step_ns if stepped_after else 0
        found_ns = clocks.stamps.stamp_ns(ancillary, true_ns + lag_ns)
    assert found_ns is None or abs(found_ns - true_ns) <= 2_000_000 + lag_ns


def test_a_large_step_is_seen_at_once_and_counted() -> None:
    with Clocks() as clocks:
        clocks.offset_ns -= 50_000_000
        for _ in range(3):
            clocks.monotonic_ns += 1_000_000
            assert clocks.stamps.stamp_ns(clocks.arrival(), clocks.monotonic_ns + 10_000) == clocks.monotonic_ns
        assert (clocks.stamps.steps, clocks.stamps.drift_ns) == (1, 0)


def test_a_slewed_clock_is_followed() -> None:
    """An hour at 100 ppm, which no clock daemon exceeds for long: 360 ms in all, a tenth of a second between looks."""
    worst_ns = 0
    with Clocks() as clocks:
        for _ in range(36_000):
            clocks.monotonic_ns += 100_000_000
            clocks.offset_ns += 10_000
            found_ns = clocks.stamps.stamp_ns(clocks.arrival(), clocks.monotonic_ns + 20_000)
            assert found_ns is not None
            worst_ns = max(worst_ns, abs(found_ns - clocks.monotonic_ns))
            clocks.stamps.measure()
        assert (clocks.stamps.steps, clocks.stamps.drift_ns) == (0, 360_000_000)
    assert worst_ns <= 10_000


def test_a_kernel_that_gives_no_stamp_is_believed() -> None:
    with Clocks() as clocks:
        assert clocks.stamps.stamp_ns([], clocks.monotonic_ns) is None
        assert clocks.stamps.stamp_ns([(1, 37, bytes(48))], clocks.monotonic_ns) is None
