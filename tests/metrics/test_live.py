"""Figures of a stage while it goes on: near to the exact ones, in bounded memory."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from withstand.metrics.live import LiveStage, Sketch, Told, remaining_s, share_done
from withstand.metrics.live.bins import Over, Recent, Whole
from withstand.metrics.live.sketch import bucket_of
from withstand.metrics.quantiles import percentile
from withstand.metrics.sample import Sample
from withstand.spec import Poisson, Slo, Stage
from withstand.testing.records import make_failure, make_record

NS = 1_000_000_000
STAGE = Stage(name="rate-10", arrivals=Poisson(10.0), num_prompts=1000)


def sketch_of(values: list[float]) -> Sketch:
    sketch = Sketch()
    sketch.put([bucket_of(value) for value in values])
    return sketch


def sample_of(values: list[float]) -> Sample:
    sample = Sample("d")
    sample.extend(values)
    return sample


@settings(deadline=None)
@given(st.lists(st.floats(1, 1e15), min_size=1, max_size=200), st.floats(0, 1))
def test_a_quantile_is_off_by_little(values: list[float], share: float) -> None:
    (found,) = sketch_of(values).quantiles((share,))
    assert found == pytest.approx(percentile(sample_of(values), share), rel=0.016)


def test_few_answers_have_the_report_s_p50_and_p99() -> None:
    """Of two times the board's p50, p95 and p99 were all the lower one."""
    ttft_ns = [545e6, 638e6, 672e6, 771e6, 875e6, 1034e6]
    for values in (ttft_ns, ttft_ns[:2]):
        exact = [percentile(sample_of(values), share) for share in (0.5, 0.95, 0.99)]
        assert sketch_of(values).quantiles((0.5, 0.95, 0.99)) == pytest.approx(exact, rel=0.016)


@settings(deadline=None)
@given(st.lists(st.floats(1, 1e9), max_size=50), st.lists(st.floats(1, 1e9), max_size=50))
def test_two_sketches_are_that_of_both(some: list[float], others: list[float]) -> None:
    merged = sketch_of(some)
    merged.median()
    merged.merge(sketch_of(others))
    shares = (0.0, 0.5, 1.0)
    assert merged.quantiles(shares) == sketch_of(some + others).quantiles(shares)
    assert merged.median() == sketch_of(some + others).median()


@settings(deadline=None)
@given(st.lists(st.integers(-5, 10**6), max_size=60))
def test_a_long_stage_has_few_bins_and_loses_nothing(seconds: list[int]) -> None:
    whole = Whole(240)
    for second in seconds:
        whole.at(second * NS).put(Over(ended=1))
    assert len(whole.bins) <= 240
    assert sum(kept.ended for kept in whole.bins) == len(seconds)


def test_the_last_seconds_forget() -> None:
    recent = Recent(10)
    for second in range(100):
        recent.at(second * NS).put(Over(ended=1))
    assert recent.within(99 * NS).ended == 11
    assert recent.within(105 * NS).ended == 5
    assert recent.length_s(105 * NS, since_ns=0) == 10.0
    assert recent.length_s(5 * NS, since_ns=2 * NS) == 3.0


def test_rates_and_shares_of_what_was_read_and_what_was_only_counted() -> None:
    live = LiveStage(0, STAGE, Slo(ttft=60.0), 0)
    for i in range(100):
        live.add(make_record(i, sent_ms=90.0 * i), 10 * NS)
    for i in range(10):
        live.add(make_failure(100 + i, sent_ms=9_000.0), 10 * NS)
    live.add_unread(90, 10, 10 * NS)
    now = live.current(10 * NS)
    assert (now.done, now.failed) == (210, 20)
    assert now.rate_ended == pytest.approx(19.0)
    assert now.sampled == pytest.approx(110 / 210)
    assert now.good
    assert now.good.whole == pytest.approx(100 / 110)
    assert now.output_tokens_per_s == pytest.approx(19.0 * (make_record().output_tokens or 0))
    assert [(e.status, e.count, e.text) for e in now.errors] == [("http_error", 10, "made up: http_error")]
    assert [d.kind.value for d in now.doubts] == ["requests_failed"]
    assert now.latencies["ttft"].rolling.p50 == pytest.approx(50.0, rel=0.016)
    assert now.pace
    assert sum(now.pace.ended) == pytest.approx(190.0)


def test_a_stage_of_a_million_seconds_stays_small() -> None:
    live = LiveStage(0, STAGE, Slo(), 0)
    for i in range(2_000):
        live.add(make_record(i, sent_ms=500_000.0 * i), 10**6 * NS)
    now = live.current(10**6 * NS)
    assert now.pace
    assert len(now.pace.ended) <= 240
    assert len(now.latencies["e2el"].course) == len(now.pace.ended)


def test_what_the_process_that_runs_tells_is_kept_for_ten_seconds() -> None:
    live = LiveStage(0, STAGE, Slo(), 0)
    for tenth in range(10_000):
        live.tell(Told(elapsed_s=tenth / 10, sent=tenth, done=tenth, failed=0, in_flight=1, output_tokens=5 * tenth))
    now = live.current(1000 * NS)
    assert now.rate_sent == pytest.approx(10.0)
    assert now.output_tokens_per_s == pytest.approx(50.0)


def test_how_far_it_is() -> None:
    assert share_done(done=50, planned=100, elapsed_s=9.0, duration_s=10.0) == 0.9
    assert share_done(done=None, planned=100, elapsed_s=9.0, duration_s=None) is None
    assert remaining_s(30.0, 0.75) == pytest.approx(10.0)
    assert remaining_s(30.0, 0.0) is None
