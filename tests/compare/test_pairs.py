"""Sides measured in turn, on simulated machines that drift: equal ones are not told apart, others are."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from compared import queue, records_of, run_of, side_of
from withstand.compare.build import compare
from withstand.compare.difference import Pair
from withstand.compare.estimate import Estimate
from withstand.compare.pairs import Lead, fitted, pair_of_turns
from withstand.compare.run import ComparedRun, Turn
from withstand.compare.shape import Method, Verdict
from withstand.control.interleaving import blocks_of

NOISE = 0.02


def _measured(logs: list[float], pairs: int) -> Pair:
    sides: tuple[dict[Turn, Estimate], dict[Turn, Estimate]] = ({}, {})
    for block, log in zip(blocks_of(pairs), logs, strict=True):
        sides[block.side][Turn(block.pair, block.place)] = Estimate(value=math.exp(log))
    return pair_of_turns(*sides)


def _simulated(random: Random, pairs: int, effect: float, drift: str) -> Pair:
    walk, logs = 0.0, []
    slope = random.gauss(0, 0.02)
    for block in blocks_of(pairs):
        walk += random.gauss(0, 0.02) if drift == "walk" else slope if drift == "line" else 0.0
        logs.append(walk + random.gauss(0, NOISE) + (effect if block.side else 0.0))
    return _measured(logs, pairs)


@given(st.lists(st.floats(-0.1, 0.1), min_size=16, max_size=16), st.floats(-0.5, 0.5))
def test_a_linear_drift_falls_out_of_difference_and_interval(logs: list[float], slope: float) -> None:
    still, drifting = (
        fitted(
            [
                Lead(sign * (b - a), sign)
                for (a, b), sign in zip(
                    zip(series[::2], series[1::2], strict=True), (1, -1, -1, 1, -1, 1, 1, -1), strict=True
                )
            ]
        )
        for series in (logs, [log + slope * i for i, log in enumerate(logs)])
    )
    assert still is not None
    assert drifting is not None
    assert drifting.log_ratio == pytest.approx(still.log_ratio, abs=1e-9)
    assert drifting.error == pytest.approx(still.error, abs=1e-9)


@pytest.mark.parametrize("drift", ["none", "line", "walk"])
@pytest.mark.parametrize("pairs", [4, 8])
def test_equal_sides_are_told_apart_no_more_often_than_said(drift: str, pairs: int) -> None:
    random = Random(f"{drift} {pairs}")
    chances = [_simulated(random, pairs, 0.0, drift).chance or 0.0 for _ in range(3000)]
    assert 0.037 < sum(chance <= 0.05 for chance in chances) / len(chances) < 0.063


def test_five_percent_are_found_with_eight_pairs() -> None:
    random = Random(1)
    found = [_simulated(random, 8, math.log(1.05), "line") for _ in range(300)]
    assert sum((pair.chance or 0.0) <= 0.05 for pair in found) / len(found) > 0.9


def test_too_few_pairs_tell_nothing_and_one_order_neither() -> None:
    few = pair_of_turns({Turn(1, 0): Estimate(value=1.0)}, {Turn(1, 1): Estimate(value=2.0)})
    assert few.chance is None
    assert few.lack is not None
    assert fitted([Lead(0.1, 1), Lead(0.2, 1), Lead(0.1, 1)]) is None


def test_a_comparison_of_runs_that_were_measured_in_turn_is_over_pairs() -> None:
    """The machine becomes slower all the time; only B is slower than that."""
    random = Random(7)
    sides: tuple[list[ComparedRun], list[ComparedRun]] = ([], [])
    for block in blocks_of(8):
        factor = (1 + 0.05 * block.place) * (1.2 if block.side else 1.0) * math.exp(random.gauss(0, 0.01))
        run = run_of(records_of([20 * factor * value for value in queue(60, 0.1, f"pair {block.pair}")]))
        sides[block.side].append(replace(run, turn=Turn(block.pair, block.place)))
    comparison = compare([side_of("A", *sides[0]), side_of("B", *sides[1])])
    difference = next(r for r in comparison.groups[0].rows if r.metric == "ttft.mean").differences[1]
    assert difference is not None
    assert difference.method is Method.PAIRS
    assert difference.verdict is Verdict.WORSE
    assert difference.percent == pytest.approx(20, abs=3)
    assert "measured in turn" in comparison.method


def test_who_is_fastest_is_the_difference_s_to_say() -> None:
    """B is faster in each pair but for the drift, which meets it in two pairs of the three that are left."""
    sides: tuple[list[ComparedRun], list[ComparedRun]] = ([], [])
    for block in (one for one in blocks_of(4) if one.pair != 3):
        factor = 1.1**block.place * (0.98 if block.side else 1.0)
        run = run_of(records_of([20 * factor * value for value in queue(60, 0.1, "one")]))
        sides[block.side].append(replace(run, turn=Turn(block.pair, block.place)))
    row = compare([side_of("A", *sides[0]), side_of("B", *sides[1])]).groups[0].rows[0]
    difference = row.differences[1]
    assert difference is not None
    assert difference.percent == pytest.approx(-2)
    assert (row.fastest, row.faster_by_percent) == (1, pytest.approx(2))
