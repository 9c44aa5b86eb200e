import math
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.metrics.quantiles import distribution, interval_ranks, percentile, samples_needed, student_t
from withstand.metrics.sample import Sample


def pile(values: list[int]) -> Sample:
    made = Sample()
    made.extend(values)
    return made


@given(st.lists(st.integers(0, 10**13), min_size=1, max_size=300), st.sampled_from([0, 1, 10, 25, 50, 75, 90, 95, 99]))
def test_percentiles_are_numpys(values: list[int], percent: int) -> None:
    assert percentile(pile(values), percent / 100) == pytest.approx(np.percentile(values, percent), rel=1e-12)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=50), st.floats(0, 1))
def test_percentiles_stay_within_the_values(values: list[int], share: float) -> None:
    assert min(values) <= percentile(pile(values), share) <= max(values)


def exact_ranks(n: int, share: Fraction) -> tuple[int | None, int | None]:
    """By whole fractions, from the definition."""
    chances = [math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
    below = [sum(chances[:k], Fraction(0)) for k in range(n + 1)]  # chance that fewer than k values are below
    tail = Fraction(25, 1000)
    low = max((k - 1 for k in range(1, n + 1) if below[k] <= tail), default=None)
    high = min((k - 1 for k in range(1, n + 1) if 1 - below[k] <= tail), default=None)
    return low, high


@given(st.integers(1, 60), st.sampled_from([50, 75, 90, 95, 99]))
def test_interval_ranks_are_the_binomials(n: int, percent: int) -> None:
    assert interval_ranks(n, percent / 100) == exact_ranks(n, Fraction(percent, 100))


@pytest.mark.parametrize("n", [500, 12_345, 1_000_000, 12_800_000])
@pytest.mark.parametrize("share", [0.5, 0.75, 0.9, 0.95, 0.99])
def test_interval_ranks_of_large_samples_are_near_the_normal_ones(n: int, share: float) -> None:
    low, high = interval_ranks(n, share)
    half = 1.96 * math.sqrt(n * share * (1 - share))
    assert low is not None
    assert high is not None
    assert low == pytest.approx(n * share - half, abs=3)
    assert high == pytest.approx(n * share + half, abs=3)


@pytest.mark.parametrize("percent", [50, 75, 90, 95, 99])
def test_samples_needed_is_where_both_ends_close(percent: int) -> None:
    needed = samples_needed(percent)
    assert None not in interval_ranks(needed, percent / 100)
    assert None in interval_ranks(needed - 1, percent / 100)


def test_a_p99_of_twenty_cannot_be_bounded() -> None:
    shown = distribution(pile(list(range(20))), 1.0)
    assert shown.percentiles["p99"] is not None
    assert shown.intervals["p99"].high is None
    assert shown.intervals["p50"].low is not None
    assert shown.intervals["p50"].high is not None


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    rng = random.Random(7)
    truth = {"p50": math.log(2), "p90": math.log(10), "mean": 1.0}
    hits = dict.fromkeys(truth, 0)
    for _ in range(400):
        made = Sample("d")
        made.extend(rng.expovariate(1.0) for _ in range(100))
        shown = distribution(made, 1.0).intervals
        for key, value in truth.items():
            low, high = shown[key].low, shown[key].high
            hits[key] += (low is None or low <= value) and (high is None or value <= high)
    assert hits["p50"] >= 370
    assert hits["p90"] >= 370
    assert hits["mean"] >= 360  # Student's interval of a skewed distribution is a little short


@pytest.mark.parametrize(("freedom", "table"), [(4, 2.7764), (9, 2.2622), (30, 2.0423), (1000, 1.9623)])
def test_student_t_is_the_tables(freedom: int, table: float) -> None:
    assert student_t(freedom) == pytest.approx(table, rel=1e-3)


def test_nothing_is_known_of_no_values() -> None:
    shown = distribution(Sample(), 1e6)
    assert (shown.n, shown.mean, shown.percentiles["p50"], shown.intervals) == (0, None, None, {})


def test_values_that_hang_together_get_no_interval() -> None:
    assert distribution(pile(list(range(1000))), 1.0, independent=False).intervals == {}


@pytest.mark.parametrize(
    ("confidence", "above", "n"), [(0.975, 1, 368), (0.99, 1, 459), (0.975, 2, 555), (0.99, 2, 662)]
)
def test_the_decision_s_numbers_of_answers_are_the_fewest(confidence: float, above: int, n: int) -> None:
    """By the binomial distribution itself: the chance that so many of n values lie above the true p99."""

    def chance(count: int) -> float:
        return 1 - sum(math.comb(count, k) * 0.01**k * 0.99 ** (count - k) for k in range(above))

    assert chance(n) >= confidence > chance(n - 1)
    told = (Path(__file__).parents[2] / "docs" / "decisions" / "011-answers-for-a-p99.md").read_text("utf-8")
    assert f"≥ {confidence:g} | {n} |" in told
    assert samples_needed(99) == 368
