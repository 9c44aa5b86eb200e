import math
import statistics
from random import Random

import pytest

from withstand.compare.dependence import memory, sureness


def _hanging_together(n: int, share: float, seed: int) -> list[float]:
    """Each value keeps a share of the one before: they count for (1 - share) / (1 + share) as many draws."""
    rng, value, found = Random(seed), 0.0, []
    for _ in range(n + 200):
        value = share * value + rng.gauss(0, 1)
        found.append(value)
    return found[200:]


@pytest.mark.parametrize(("n", "share"), [(400, 0.0), (900, 0.5), (3000, 0.8)])
def test_the_error_is_that_of_the_mean(n: int, share: float) -> None:
    series = [_hanging_together(n, share, seed) for seed in range(120)]
    means = [math.fsum(values) / n for values in series]
    told = [sure.error**2 for values in series if (sure := sureness(values))]
    assert math.sqrt(statistics.fmean(told)) == pytest.approx(statistics.stdev(means), rel=0.25)


def test_memory_counts_how_many_values_are_one() -> None:
    told = [memory(_hanging_together(4000, 0.8, seed)) for seed in range(10)]
    assert statistics.fmean(told) == pytest.approx((1 + 0.8) / (1 - 0.8), rel=0.25)
    assert memory([Random(1).random() for _ in range(500)]) < 2


def test_series_shorter_than_their_memory_are_not_settled() -> None:
    told = [sure for seed in range(20) if (sure := sureness(_hanging_together(100, 0.97, seed)))]
    short = [sure for sure in told if not sure.settled]
    assert len(short) >= 14
    assert all(sure.lengths_needed > 1 for sure in short)


def test_a_drift_counts_as_unsure() -> None:
    rng = Random(1)
    still = [rng.gauss(100, 1) for _ in range(1000)]
    moving = [value + i / 100 for i, value in enumerate(still)]
    a, b = sureness(still), sureness(moving)
    assert a is not None
    assert b is not None
    assert b.error > 5 * a.error


def test_equal_values_have_no_error_and_few_values_no_answer() -> None:
    sure = sureness([3.5] * 100)
    assert sure is not None
    assert sure.error == 0
    assert sureness([1.0, 2.0] * 10) is None


def test_long_series_are_binned_without_changing_the_answer() -> None:
    values = _hanging_together(1024 * 8, 0.5, 5)
    binned, thinned = sureness(values), sureness([sum(values[i : i + 8]) / 8 for i in range(0, len(values), 8)])
    assert binned is not None
    assert thinned is not None
    assert binned.error == pytest.approx(thinned.error)
