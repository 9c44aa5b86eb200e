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
    ends = Ends(sample_of(values), low, high, Fuzz(), Fuzz())
    assert abs(percentile(sample_of(values), share) - percentile(sample_of(true), share)) <= ends.off(share) + 1e-3
    assert abs(sample_of(values).mean() - sample_of(true).mean()) <= ends.off_mean() + 1e-3


@given(VALUES, SHARES, st.integers(0, 90), st.randoms(use_true_random=False))
def test_some_values_may_be_off_by_much(values: list[int], share: float, count: int, rng: random.Random) -> None:
    fuzz = Fuzz(rest=1000, count=count, most=10**7)
    far = set(rng.sample(range(len(values)), min(count, len(values))))
    reach = [1000 + 10**7 * (i in far) for i in range(len(values))]
    true = [value + rng.randint(-r, r) for value, r in zip(values, reach, strict=True)]
    shown = sample_of(values)
    ends = Ends(shown, shown, shown, fuzz, fuzz)
    assert abs(percentile(shown, share) - percentile(sample_of(true), share)) <= ends.off(share) + 1e-3
    assert abs(shown.mean() - sample_of(true).mean()) <= ends.off_mean() + 1e-3


def test_few_values_that_are_off_by_much_do_not_move_a_median() -> None:
    shown = sample_of([*range(1000)])
    ends = Ends(shown, shown, shown, Fuzz(count=10, most=1e9), Fuzz())
    assert ends.off(0.5) == pytest.approx(10)
    assert ends.off(0.005) > 1e8


def test_errors_add_up() -> None:
    assert Fuzz(1, 2, 3) + Fuzz(10, 20, 30) == Fuzz(11, 22, 33)
    assert Fuzz(1, 2, 3) + Fuzz(10, 0, 30) == Fuzz(11, 2, 3)
    assert Fuzz(1, 2, 3).times(0.5) == Fuzz(0.5, 2, 1.5)
