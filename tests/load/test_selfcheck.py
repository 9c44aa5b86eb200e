"""The histogram of lags is flat and true to a few per cent."""

from hypothesis import given
from hypothesis import strategies as st

from withstand.load.selfcheck import LagHistogram


def test_empty_says_nothing() -> None:
    assert LagHistogram().spread() is None


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200))
def test_quantiles_are_at_most_one_bucket_off(values: list[int]) -> None:
    histogram = LagHistogram()
    for value in values:
        histogram.add(value)
    spread = histogram.spread()
    assert spread is not None
    ordered = sorted(values)
    for share, found in ((0.5, spread.p50_ns), (0.99, spread.p99_ns)):
        true = ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
        assert true <= found <= max(true * (1 + 1 / 16), true + 1024)
    assert spread.n == len(values)
    assert max(values) <= spread.max_ns <= max(values) + 1024
