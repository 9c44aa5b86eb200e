import random

from withstand.metrics.trend import growth


def test_what_rises_is_seen() -> None:
    found = growth([(t * 100, 1000 + 5 * t) for t in range(200)])
    assert found is not None
    assert found.sure
    assert found.late > found.early


def test_chance_is_seldom_taken_for_growth() -> None:
    rng = random.Random(3)
    alarms = 0
    for _ in range(400):
        found = growth([(t * 100, round(rng.expovariate(1e-3))) for t in range(60)])
        assert found is not None
        alarms += found.sure
    assert alarms <= 6  # 1 in 200 by the rank test, and fewer by the size of the rise


def test_a_steady_queue_is_not_growth() -> None:
    """An M/M/1 queue at 70 % load: the waits of neighbours hang together, yet they do not grow."""
    rng = random.Random(11)
    alarms = 0
    for _ in range(100):
        free, now, points = 0.0, 0.0, []
        for _ in range(600):
            now += rng.expovariate(0.7)
            free = max(free, now) + rng.expovariate(1.0)
            points.append((round(now * 1000), round((free - now) * 1000)))
        found = growth(points)
        alarms += found is not None and found.sure
    assert alarms <= 5


def test_an_overloaded_queue_is_growth() -> None:
    rng = random.Random(5)
    sure = 0
    for _ in range(50):
        free, now, points = 0.0, 0.0, []
        for _ in range(600):
            now += rng.expovariate(1.1)
            free = max(free, now) + rng.expovariate(1.0)
            points.append((round(now * 1000), round((free - now) * 1000)))
        found = growth(points)
        sure += found is not None and found.sure
    assert sure >= 35


def test_the_filling_of_an_empty_server_is_not_growth() -> None:
    """The first second's requests share the server with few others."""
    assert not growth([(t * 10, 1000 if t > 100 else 500 + 5 * t) for t in range(600)]).sure  # type: ignore[union-attr]


def test_few_points_say_nothing() -> None:
    assert growth([(t, t) for t in range(29)]) is None
    assert growth([]) is None


def test_equal_values_are_no_growth() -> None:
    found = growth([(t, 7) for t in range(100)])
    assert found is not None
    assert not found.sure
