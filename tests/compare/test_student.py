import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.compare.student import point, two_sided


@pytest.mark.parametrize(
    ("freedom", "confidence", "expected"),
    [(1, 0.95, 12.7062), (4, 0.95, 2.7764), (9, 0.99, 3.2498), (24, 0.95, 2.0639), (1e6, 0.95, 1.95996)],
)
def test_points_are_those_of_the_tables(freedom: float, confidence: float, expected: float) -> None:
    assert point(confidence, freedom) == pytest.approx(expected, rel=1e-4)


@given(st.floats(0.01, 30), st.floats(0.6, 500))
def test_a_point_and_its_chance_are_inverse(t: float, freedom: float) -> None:
    chance = two_sided(t, freedom)
    if 1e-9 < chance < 1 - 1e-9:
        assert point(1 - chance, freedom) == pytest.approx(t, rel=1e-4)


def test_with_infinite_freedom_it_is_the_normal_distribution() -> None:
    assert two_sided(1.959964, math.inf) == pytest.approx(0.05, abs=1e-6)
    assert point(0.95, math.inf) == pytest.approx(1.959964, abs=1e-6)
