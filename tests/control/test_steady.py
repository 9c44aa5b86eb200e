"""Where the steady state begins."""

from random import Random

from withstand.control.steady import steady_from


def test_a_start_that_is_unlike_the_rest_is_cut() -> None:
    random = Random(1)
    values = [10.0 - i / 10 for i in range(100)] + [random.gauss(0, 0.3) for _ in range(900)]
    cut = steady_from(values)
    assert cut is not None
    assert 80 <= cut <= 130


def test_of_what_is_steady_from_the_start_little_is_cut() -> None:
    random = Random(2)
    cuts = [steady_from([random.gauss(0, 1) for _ in range(1000)]) for _ in range(20)]
    assert sum(cut is not None and cut < 100 for cut in cuts) >= 17


def test_what_goes_on_rising_never_settles() -> None:
    assert steady_from([float(i) for i in range(1000)]) is None


def test_of_few_values_nothing_is_known() -> None:
    assert steady_from([1.0] * 20) is None
