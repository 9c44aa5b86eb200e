"""A percentile's error is bounded, whatever the values are and whichever of them are wrong."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.metrics.fuzz import Ends, Fuzz
from withstand.metrics.quantiles import percentile
from withstand.metrics.sample import Sample

VALUES = st.lists(st.integers(0, 10**9), min_size=1, max_size=80)
SHARES = st.sampled_from((0.0, 0.5, 0.9, 0.99, 1.0))


def sample_of(values: list[int]) -> Sample:
    sample = Sample()
    sample.extend(values)
    return sample


@given(VALUES, SHARES, st.data())
def test_a_percentile_lies_between_those_of_the_ends(values: list[int], share: float, data: st.DataObject) -> None:
    spans = data.draw(st.lists(st.integers(0, 10**8), min_size=len(values), max_size=len(values)))
    true = [data.draw(st.integers(value - span, value + span)) for value, span in zip(values, spans, strict=True)]
    low = sample_of([value - span for value, span in zip(values, spans, strict=True)])
    high = sample_of([value + span for value, span in zip(values, spans, strict=True)])
    ends = Ends(sample_of(values), low, high)
    assert abs(percentile(sample_of(values), share) - percentile(sample_of(true), share)) <= ends.off(share) + 1e-3
    assert abs(sample_of(values).mean() - sample_of(true).mean()) <= ends.off_mean() + 1e-3


@given(VALUES, SHARES, st.integers(0, 90), st.integers(0, 5), st.randoms(use_true_random=False))
def test_some_values_may_be_off_by_much(
    values: list[int], share: float, many: int, few: int, rng: random.Random
) -> None:
    """Two causes: one that touches many by little, one that touches few by much; they may meet in one value."""
    fuzzes = (Fuzz(rest=1000, count=many, most=10**5), Fuzz(count=few, most=10**8))
    reach = [1000] * len(values)
    for fuzz in fuzzes:
        for i in rng.sample(range(len(values)), min(fuzz.count, len(values))):
            reach[i] += round(fuzz.most)
    true = [value + rng.randint(-r, r) for value, r in zip(values, reach, strict=True)]
    shown = sample_of(values)
    ends = Ends(shown, shown, shown, fuzzes, fuzzes)
    assert abs(percentile(shown, share) - percentile(sample_of(true), share)) <= ends.off(share) + 1e-3
    assert abs(shown.mean() - sample_of(true).mean()) <= ends.off_mean() + 1e-3


def test_few_values_that_are_off_by_much_do_not_move_a_median() -> None:
    shown = sample_of([*range(1000)])
    ends = Ends(shown, shown, shown, (Fuzz(count=10, most=1e9),))
    assert ends.off(0.5) == pytest.approx(10)
    assert ends.off(0.005) > 1e8


def test_each_cause_is_taken_the_milder_way() -> None:
    """Many values a little off, a few far off: neither makes all of them far off."""
    shown = sample_of([*range(1000)])
    fuzzes = (Fuzz(count=900, most=3), Fuzz(count=10, most=1e9))
    assert Ends(shown, shown, shown, fuzzes).off(0.5) == pytest.approx(13)


def test_a_part_of_a_value_feels_a_part_of_the_error() -> None:
    assert Fuzz(1, 2, 3).times(0.5) == Fuzz(0.5, 2, 1.5)
