import random
from collections.abc import Callable

import pytest

from withstand.metrics.context import StageContext
from withstand.metrics.series import Bins, stage_series
from withstand.record import Record, Status

MS = 1_000_000
Answer = Callable[..., Record]
Context = Callable[..., StageContext]


def many(answer: Answer, n: int) -> list[Record]:
    rng = random.Random(2)
    return [
        answer(i, at_ms=20 * i, ttft_ms=rng.uniform(20, 80), itl_ms=rng.uniform(5, 15), tokens=rng.randint(2, 30))
        for i in range(n)
    ]


def test_charts_stay_bounded_and_keep_the_extremes(answer: Answer, context: Context) -> None:
    records = [*many(answer, 6000), answer(6000, at_ms=7777, ttft_ms=4321)]
    series = stage_series(records, context(6001))
    for name in ("ttft", "tpot", "itl", "e2el", "response"):
        ecdf, scatter = series.ecdf[name], series.scatter[name]
        assert len(ecdf.share) == len(ecdf.value_ms) == 200
        assert (ecdf.share[0], ecdf.share[-1]) == (0.0, 1.0)
        assert ecdf.value_ms == sorted(ecdf.value_ms)
        assert 0 < len(scatter.at_s) == len(scatter.value_ms) <= 1500
        assert scatter.at_s == sorted(scatter.at_s)
        assert max(scatter.value_ms) == pytest.approx(ecdf.value_ms[-1])
        assert min(scatter.value_ms) == pytest.approx(ecdf.value_ms[0])
    assert series.bins is not None
    assert len(series.bins.start_s) <= 240


def test_answers_to_a_burst_stay_bounded_and_keep_the_extremes(answer: Answer, context: Context) -> None:
    rng = random.Random(3)
    scatter = stage_series([answer(i, ttft_ms=rng.uniform(20, 80)) for i in range(4000)], context(4000)).scatter["ttft"]
    assert len(scatter.at_s) <= 3
    assert 20 <= min(scatter.value_ms) < 21
    assert 79 < max(scatter.value_ms) <= 80


def test_few_answers_are_all_shown(answer: Answer, context: Context) -> None:
    series = stage_series([answer(i, at_ms=1000 + 100 * i, ttft_ms=50 + i) for i in range(5)], context(5))
    assert series.scatter["ttft"].at_s == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])
    assert series.scatter["ttft"].value_ms == pytest.approx([50, 51, 52, 53, 54])
    assert series.ecdf["ttft"].value_ms == pytest.approx([50, 51, 52, 53, 54])
    assert series.ecdf["ttft"].count == 5


def bins_of(records: list[Record], context: StageContext) -> Bins:
    bins = stage_series(records, context).bins
    assert bins is not None
    return bins


@pytest.mark.parametrize("n", [1, 30, 2000])
def test_bins_hold_every_request_and_token_once(n: int, answer: Answer, context: Context) -> None:
    records = many(answer, n)
    records += [answer(n, at_ms=13, status=Status.TIMEOUT), Record(id=n + 1, stage=0, status=Status.NOT_SENT)]
    bins = bins_of(records, context(n))
    assert sum(bins.sent) == n + 1
    assert sum(filter(None, bins.scheduled)) == n + 1
    assert sum(bins.completed) == n
    assert sum(bins.failed) == 1
    assert sum(bins.output_tokens) == sum(r.output_tokens or 0 for r in records if r.status is Status.OK)
    lengths = {len(column) for column in (bins.start_s, bins.sent, bins.failed, bins.concurrency, bins.output_tokens)}
    assert lengths == {len(bins.scheduled)}


def test_concurrency_in_a_bin_is_its_mean(answer: Answer, context: Context) -> None:
    """Ten a second, each a second long, from 0: full at 1 s, so the bins after it hold ten."""
    bins = bins_of([answer(i, at_ms=100 * i, ttft_ms=100, itl_ms=100, tokens=10) for i in range(60)], context(60))
    middle = [level for at, level in zip(bins.start_s, bins.concurrency, strict=True) if 1.0 <= at < 5.5]
    assert middle == pytest.approx([10.0] * len(middle))
    total_s = sum(level * bins.width_s for level in bins.concurrency)
    assert total_s == pytest.approx(60 * 1.0)


def test_a_closed_loop_has_nothing_scheduled(answer: Answer, context: Context) -> None:
    bins = bins_of([answer(i, at_ms=300 * i, scheduled_ns=None) for i in range(4)], context(4))
    assert set(bins.scheduled) == {None}


def test_nothing_sent_is_an_empty_chart(context: Context) -> None:
    series = stage_series([Record(id=0, stage=0, status=Status.NOT_SENT)], context(1))
    assert (series.ecdf, series.scatter, series.bins) == ({}, {}, None)
