"""The offset of two clocks, and the bound of its error: an equation, hence any values."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand import clock
from withstand.load.ray import offsets

NS = st.integers(0, 10**12)


@given(st.integers(-(10**18), 10**18), NS, NS, NS)
def test_the_truth_lies_within_the_error_however_unequal_the_ways(
    true_ns: int, sent_ns: int, to: int, back: int
) -> None:
    theirs_ns = sent_ns + to + true_ns
    found = offsets.offset_of(sent_ns, theirs_ns, sent_ns + to + back)
    assert abs(found.offset_ns - true_ns) <= found.error_ns
    assert found.error_ns <= (to + back + 1) // 2


def test_the_tightest_round_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock exactly one second ahead; the ways there and back last what the list says."""
    ways = [(9, 1)] * 10 + [(2, 1)] + [(1, 50)] * 20
    now = iter(_readings(ways))
    monkeypatch.setattr(clock, "now_ns", lambda: next(now))
    found = offsets.measure(lambda: next(now) + 1_000_000_000)
    assert found.error_ns == 2
    assert abs(found.offset_ns - 1_000_000_000) <= 2


def _readings(ways: list[tuple[int, int]]) -> Iterator[int]:
    now_ns = 0
    for to, back in ways:
        yield from (now_ns, now_ns + to, now_ns + to + back)
        now_ns += 1000
