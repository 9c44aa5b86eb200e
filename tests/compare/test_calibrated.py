"""The method errs as seldom as it says, and finds what it should. Seeded and small: large figures are a benchmark's."""

import math

import pytest

from compared import queue
from withstand.compare.difference import Judge, Pair, corrected, pair_of
from withstand.compare.estimate import Estimate, of_mean, of_quantiles
from withstand.compare.shape import Verdict

SETS = 60
FALSE_MAX = 7  # of 60 at 5 %, a method that holds has more with a chance of 1 in 100


def _estimates(series: list[float]) -> list[Estimate]:
    ordered = sorted(series)
    told = {share: ordered[int(share * (len(series) - 1))] for share in (0.5, 0.9)}
    return [of_mean(math.fsum(series) / len(series), series), *of_quantiles(told, series).values()]


def _told_apart(one: list[float], other: list[float], *, one_schedule: bool = False) -> bool:
    both = zip(_estimates(one), _estimates(other), strict=True)
    pairs = [pair_of([a], [b], one_schedule=one_schedule) for a, b in both]
    tested = [pair for pair in pairs if pair.chance is not None]
    judge = Judge(comparisons=len(tested), negligible_percent=1.0)
    chances = corrected([pair.chance or 0.0 for pair in tested])
    given = [judge.difference(p, c, lower_is_better=True, trusted=True) for p, c in zip(tested, chances, strict=True)]
    return any(d.verdict in {Verdict.BETTER, Verdict.WORSE} for d in given)


@pytest.mark.parametrize("load", [0.5, 0.9])
@pytest.mark.parametrize("one_schedule", [False, True])
def test_the_same_queue_is_hardly_ever_told_apart(load: float, one_schedule: bool) -> None:
    false = sum(
        _told_apart(
            queue(600, load, f"a{seed}", schedule=seed),
            queue(600, load, f"b{seed}", schedule=seed if one_schedule else -seed - 1),
            one_schedule=one_schedule,
        )
        for seed in range(SETS)
    )
    assert false <= FALSE_MAX


def test_five_percent_are_found_at_the_length_that_is_asked_for() -> None:
    length = _length_asked_for()
    found = sum(
        _told_apart(queue(length, 0.3, f"c{seed}"), [v * 1.05 for v in queue(length, 0.3, f"d{seed}")])
        for seed in range(15)
    )
    assert 1000 < length < 40_000
    assert found >= 12


def _length_asked_for() -> int:
    pilot: list[Pair] = [pair_of([a], [b]) for a, b in zip(_pilot("e"), _pilot("f"), strict=True)]
    judge = Judge(comparisons=3, negligible_percent=1.0)
    return math.ceil(1000 * judge.lengths_needed(pilot[0], math.log(1.05)))


def _pilot(seed: str) -> list[Estimate]:
    return _estimates(queue(1000, 0.3, seed))


def test_runs_too_short_for_their_queue_say_so() -> None:
    told = [of_mean(sum(series) / 200, series) for series in (queue(200, 0.95, f"short {i}") for i in range(20))]
    lacks = [estimate.lack for estimate in told if estimate.error is None]
    assert len(lacks) >= 10
    assert all(lack and "too short" in lack for lack in lacks)
