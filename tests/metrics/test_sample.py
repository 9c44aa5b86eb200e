import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.metrics import sample as module
from withstand.metrics.sample import Sample

VALUES = st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=200)


def pile(values: list[int], chunk: int) -> Sample:
    made = Sample()
    for i in range(0, len(values), chunk):
        made.extend(values[i : i + chunk])
    return made


@given(VALUES, st.integers(1, 9), st.integers(1, 9))
def test_order_statistics_over_many_runs_are_those_of_the_sorted_whole(
    values: list[int], chunk: int, run_length: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_RUN_LENGTH", run_length)
        made = pile(values, chunk)
        assert [made.ranked(i) for i in range(len(values))] == sorted(values)


@given(VALUES)
def test_values_may_be_added_after_a_question(values: list[int]) -> None:
    made = pile(values, 7)
    made.ranked(0)
    made.extend(values)
    assert len(made) == 2 * len(values)
    assert made.ranked(2 * len(values) - 1) == max(values)


@given(st.lists(st.floats(1e-3, 1e12), min_size=1, max_size=200))
def test_moments_are_numpys(values: list[float]) -> None:
    made = Sample("d")
    made.extend(values)
    mean, std = made.moments()
    assert mean == pytest.approx(np.mean(values), rel=1e-12)
    assert std == pytest.approx(np.std(values), rel=1e-9, abs=1e-9 * mean)


def test_a_small_spread_on_a_large_mean_keeps_its_digits() -> None:
    made = Sample()
    made.extend(250_000_000 + i % 2 for i in range(1000))
    assert made.moments()[1] == pytest.approx(0.5, rel=1e-12)


def test_unknown_is_left_out() -> None:
    made = Sample()
    made.add(None)
    made.add(3)
    assert len(made) == 1
