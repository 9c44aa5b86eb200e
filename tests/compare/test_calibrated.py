"""The method errs as seldom as it says, and finds what it should. Seeded and small: large figures are a benchmark's."""

import math

import pytest

from compared import queue
from withstand.compare.difference import Judge, corrected, pair_of
from withstand.compare.estimate import Estimate, of_mean, of_quantiles
from withstand.compare.shape import Verdict

SETS = 60
FALSE_MAX = 7
"""Of 60 at 5 % a method that holds has more with a chance of 1 in 100."""
TRIALS = 40
FOUND_MIN = 31
"""Of 40 at 90 % a method that holds finds fewer with a chance of 1 in 200. Of 300 such trials it found 286."""


def _estimates(series: list[float]) -> list[Estimate]:
    ordered = sorted(series)
    told = {share: ordered[int(share * (len(series) - 1))] for share in (0.5, 0.9)}
    return [of_mean(math.fsum(series) / len(series), series), *of_quantiles(told, series).values()]


def _told_apart(one: list[float], other: list[float], *, one_schedule: bool = False) -> bool:
    return bool({Verdict.BETTER, Verdict.WORSE} & set(_judged(one, other, one_schedule=one_schedule)))


def _judged(one: list[float], other: list[float], *, one_schedule: bool = False) -> list[Verdict]:
    """Of mean, median and p90, as far as they can be tested; corrected together."""
    both = zip(_estimates(one), _estimates(other), strict=True)
    pairs = [pair_of([a], [b], one_schedule=one_schedule) for a, b in both]
    tested = [pair for pair in pairs if pair.chance is not None]
    judge = Judge(comparisons=len(tested), negligible_percent=1.0)
    chances = corrected([pair.chance or 0.0 for pair in tested])
    given = [judge.difference(p, c, lower_is_better=True, trusted=True) for p, c in zip(tested, chances, strict=True)]
    return [difference.verdict for difference in given]


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
    """Each trial has a pilot of its own, for the length that it asks for is a draw as well."""
    assert sum(map(_is_found, range(TRIALS))) >= FOUND_MIN


def _is_found(seed: int) -> bool:
    """By the mean alone, for which the length was asked."""
    length = _length_asked_for(seed)
    assert 1000 < length < 100_000
    slower = [latency * 1.05 for latency in queue(length, 0.3, f"d{seed}")]
    verdict, *_ = _judged(queue(length, 0.3, f"c{seed}"), slower)
    return verdict is Verdict.WORSE


def _length_asked_for(seed: int) -> int:
    one, other = (_estimates(queue(1000, 0.3, f"{name}{seed}")) for name in "ef")
    mean = pair_of(one[:1], other[:1])
    return math.ceil(1000 * Judge(comparisons=len(one), negligible_percent=1.0).lengths_needed(mean, math.log(1.05)))


def test_runs_too_short_for_their_queue_say_so() -> None:
    told = [of_mean(sum(series) / 200, series) for series in (queue(200, 0.95, f"short {i}") for i in range(20))]
    lacks = [estimate.lack for estimate in told if estimate.error is None]
    assert len(lacks) >= 10
    assert all(lack and "too short" in lack for lack in lacks)
