import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from withstand.compare.difference import Judge, Pair, corrected, pair_of
from withstand.compare.estimate import Estimate, of_mean, unsure
from withstand.compare.shape import Method, Verdict

JUDGE = Judge(comparisons=1, negligible_percent=1.0)
chances = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def _runs(*values: float) -> list[Estimate]:
    return [unsure(value, 100, "aggregates only") for value in values]


def _verdict(pair: Pair, *, lower: bool = True) -> Verdict:
    return JUDGE.difference(pair, pair.chance, lower_is_better=lower, trusted=True).verdict


@given(chances)
def test_a_corrected_chance_is_never_below_its_own_nor_above_all_of_them_together(given_chances: list[float]) -> None:
    result = corrected(given_chances)
    assert all(c <= h <= min(1.0, c * len(given_chances)) + 1e-12 for c, h in zip(given_chances, result, strict=True))
    assert min(result) == pytest.approx(min(1.0, min(given_chances) * len(given_chances)))


@given(chances)
def test_the_correction_keeps_the_order(given_chances: list[float]) -> None:
    pairs = sorted(zip(given_chances, corrected(given_chances), strict=True))
    assert [h for _, h in pairs] == sorted(h for _, h in pairs)


def test_what_would_be_shown_alone_is_named_where_it_is_one_of_many() -> None:
    pair = pair_of(_runs(100, 101, 99), _runs(103, 104, 102))
    assert pair.chance is not None
    alone, many = (Judge(comparisons=n, negligible_percent=1.0) for n in (1, 40))
    shown = alone.difference(pair, pair.chance, lower_is_better=True, trusted=True)
    among = many.difference(pair, min(1.0, 40 * pair.chance), lower_is_better=True, trusted=True)
    assert (shown.verdict, shown.is_chance_of_many) == (Verdict.WORSE, False)
    assert (among.verdict, among.is_chance_of_many) == (Verdict.NO_DIFFERENCE, True)
    equal = pair_of(_runs(100, 101, 99), _runs(100, 102, 98))
    assert not many.difference(equal, 1.0, lower_is_better=True, trusted=True).is_chance_of_many


def test_repeats_are_compared_by_welch_over_runs() -> None:
    pair = pair_of(_runs(100, 110, 105), _runs(130, 128, 140))
    logs = [[math.log(v) for v in side] for side in ((100, 110, 105), (130, 128, 140))]
    means = [sum(side) / 3 for side in logs]
    errors = [sum((v - mean) ** 2 for v in side) / 2 / 3 for side, mean in zip(logs, means, strict=True)]
    freedom = sum(errors) ** 2 / sum(e**2 / 2 for e in errors)
    assert pair.method is Method.REPEATS
    assert pair.log_ratio == pytest.approx(means[1] - means[0])
    assert pair.error == pytest.approx(math.sqrt(sum(errors)))
    assert pair.freedom == pytest.approx(freedom)
    assert _verdict(pair) is Verdict.WORSE
    assert _verdict(pair, lower=False) is Verdict.BETTER


def test_one_run_against_several_is_as_unsure_as_any_single_run() -> None:
    pair = pair_of(_runs(100, 104, 96, 102), _runs(101))
    assert pair.method is Method.REPEATS
    assert pair.freedom == 3
    assert _verdict(pair) is Verdict.NO_DIFFERENCE
    assert _verdict(pair_of(_runs(100, 104, 96, 102), _runs(150))) is Verdict.WORSE


def test_single_runs_without_facts_have_no_verdict() -> None:
    pair = pair_of(_runs(100), _runs(500))
    difference = JUDGE.difference(pair, pair.chance, lower_is_better=True, trusted=True)
    assert (difference.method, difference.verdict, difference.interval) == (Method.NONE, Verdict.UNKNOWN, None)
    assert difference.percent == pytest.approx(400)
    assert difference.enough is not None
    assert "three runs" in difference.enough


def test_a_value_of_zero_has_no_ratio() -> None:
    pair = pair_of(_runs(0), _runs(1))
    assert pair.log_ratio is None
    assert _verdict(pair) is Verdict.UNKNOWN


def test_what_is_shown_but_tiny_is_no_difference() -> None:
    pair = pair_of(_runs(100.0, 100.01, 100.02), _runs(100.5, 100.51, 100.52))
    assert pair.chance is not None
    assert pair.chance < 0.001
    assert _verdict(pair) is Verdict.NO_DIFFERENCE


def test_an_interval_holds_the_difference_and_shrinks_with_the_confidence_lost() -> None:
    pair = pair_of(_runs(100, 110, 105), _runs(130, 128, 140))
    told = JUDGE.difference(pair, pair.chance, lower_is_better=True, trusted=True)
    assert told.interval is not None
    assert told.percent is not None
    assert told.interval.low is not None
    assert told.interval.high is not None
    assert 0 < told.interval.low < told.percent < told.interval.high


def test_what_is_asked_for_grows_with_the_square_of_what_is_missing() -> None:
    one = Pair(method=Method.BLOCKS, log_ratio=0.05, error=0.05, freedom=40, chance=0.3, requests=1000)
    half = Pair(method=Method.BLOCKS, log_ratio=0.025, error=0.05, freedom=40, chance=0.6, requests=1000)
    assert JUDGE.lengths_needed(half, 0.025) == pytest.approx(4 * JUDGE.lengths_needed(one, 0.05))
    told = JUDGE.difference(one, 0.3, lower_is_better=True, trusted=True).enough
    assert told is not None
    assert told.startswith("16 times as long (16,000 requests)")


def test_runs_needed_would_have_shown_it() -> None:
    pair = pair_of(_runs(100, 104), _runs(103, 106))
    assert pair.log_ratio is not None
    runs = JUDGE.runs_needed(pair, pair.log_ratio)
    assert 3 <= runs < 100


@pytest.mark.parametrize("side", [(109.0, 109.8), (109.0,)])
def test_more_runs_are_asked_for_than_there_are_where_a_difference_was_not_shown(side: tuple[float, ...]) -> None:
    pair = pair_of(_runs(99, 100), _runs(*side))
    judge = Judge(comparisons=15, negligible_percent=1.0)
    told = judge.difference(pair, 1.0, lower_is_better=True, trusted=True)
    assert told.shows_from_percent is not None
    assert told.percent is not None
    assert told.shows_from_percent > told.percent
    assert judge.runs_needed(pair, math.log1p(told.percent / 100)) > 2


def test_one_failure_of_eighty_in_each_of_two_runs_is_no_certainty() -> None:
    good, failed = ([of_mean(share, [1.0] * 79 + [80 * share - 79])] * 2 for share in (1.0, 79 / 80))
    for baseline, side in ((good, failed), (good, failed[:1]), (good[:1], failed)):
        pair = pair_of(baseline, side)
        assert pair.chance is not None
        assert pair.chance > 0.1
        assert _verdict(pair, lower=False) is Verdict.NO_DIFFERENCE


def test_equal_repeats_of_which_no_requests_are_known_tell_nothing() -> None:
    pair = pair_of(_runs(1.0, 1.0), _runs(0.98, 0.98))
    told = JUDGE.difference(pair, pair.chance, lower_is_better=False, trusted=True)
    assert (told.verdict, told.interval, told.chance) == (Verdict.UNKNOWN, None, None)
    assert pair.lack is not None
    assert "agree exactly" in pair.lack


@given(st.lists(st.floats(90, 110), min_size=4, max_size=4), st.lists(st.floats(0.001, 0.1), min_size=4, max_size=4))
def test_what_runs_know_of_themselves_makes_nothing_surer(values: list[float], errors: list[float]) -> None:
    plain = _runs(*values)
    known = [replace(one, error=error, freedom=20.0) for one, error in zip(plain, errors, strict=True)]
    one, other = pair_of(plain[:2], plain[2:]), pair_of(known[:2], known[2:])
    assert other.chance is not None
    assert other.chance >= (one.chance or 0.0) - 1e-9


def test_one_schedule_takes_out_what_both_have_in_common() -> None:
    wave = [100 + 20 * math.sin(i / 50) + (i * 7919 % 13) / 10 for i in range(1000)]
    slower = [value * 1.05 + (i * 104729 % 11) / 10 for i, value in enumerate(wave)]
    one, other = of_mean(sum(wave) / 1000, wave), of_mean(sum(slower) / 1000, slower)
    apart, together = pair_of([one], [other]), pair_of([one], [other], one_schedule=True)
    assert apart.error is not None
    assert together.error is not None
    assert together.error < apart.error / 5
    assert _verdict(together) is Verdict.WORSE
