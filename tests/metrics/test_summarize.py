import random
from collections.abc import Callable

import pytest

from withstand.metrics.context import StageContext
from withstand.metrics.summarize import summarize, summarize_stage
from withstand.record import Record, Status, TokensFrom
from withstand.spec import Gamma, Inf, Poisson, Slo

MS = 1_000_000
Answer = Callable[..., Record]
Context = Callable[..., StageContext]


def test_a_paced_stage_says_what_was_paced(answer: Answer, context: Context) -> None:
    summary = summarize_stage([answer(i, at_ms=100 * i) for i in range(400)], context(400))
    assert (summary.attempted, summary.completed, summary.failed, summary.success_rate) == (400, 400, 0, 1.0)
    assert summary.ttft.mean == pytest.approx(50.0)
    assert summary.tpot.mean == pytest.approx(10.0)
    assert summary.itl.percentiles["p99"] == pytest.approx(10.0)
    assert summary.e2el.max == pytest.approx(240.0)
    assert summary.duration_s == pytest.approx(40.14)
    assert summary.scheduled_rate == pytest.approx(10.0)
    assert summary.achieved_rate == pytest.approx(10.0)
    assert summary.request_throughput == pytest.approx(400 / 40.14)
    assert summary.output_throughput == pytest.approx(8000 / 40.14)
    assert summary.total_token_throughput == pytest.approx((8000 + 400 * 32) / 40.14)
    assert summary.request_goodput is None
    assert summary.concurrency_peak == 3
    assert summary.output_throughput_peak == pytest.approx(200.0)
    assert summary.output_events == 8000
    assert summary.tokens_from == {"server": 8000 // 20}
    assert summary.doubts == ()


def test_a_stage_shorter_than_a_second_has_no_peak_below_its_mean(answer: Answer, context: Context) -> None:
    """40 tokens in 0.3 s were 133 tok/s, and the peak beside it 40."""
    summary = summarize_stage([answer(0), answer(1, at_ms=50)], context(2))
    assert summary.output_throughput is not None
    assert summary.output_throughput_peak is None


def test_one_arrival_of_an_open_load_makes_no_rate(answer: Answer, context: Context) -> None:
    """It was answered in 0.24 s, at 0.1 a second: 4.2 req/s were said, and were the run's headline."""
    alone = summarize_stage([answer(0)], context(1))
    assert (alone.completed, alone.request_throughput, alone.output_throughput) == (1, None, None)
    assert alone.duration_s == pytest.approx(0.24)
    burst = summarize_stage([answer(0)], context(1, arrivals=Inf()))
    assert burst.request_throughput == pytest.approx(1 / 0.24)


def test_the_order_of_records_does_not_matter(answer: Answer, context: Context) -> None:
    records = [answer(i, at_ms=90 * i + i % 7, ttft_ms=40 + i % 13, tokens=5 + i % 9) for i in range(300)]
    shuffled = records[:]
    random.Random(1).shuffle(shuffled)
    assert summarize_stage(shuffled, context(300)) == summarize_stage(records, context(300))


def test_failures_are_counted_by_status_and_have_no_latency(answer: Answer, context: Context) -> None:
    records = [answer(i) for i in range(5)]
    records += [answer(9, status=Status.TRUNCATED, error="the stream ended early") for _ in range(2)]
    records += [Record(id=20, stage=0, status=Status.REFUSED, error="connection refused")]
    summary = summarize_stage(records, context(8))
    assert (summary.attempted, summary.completed, summary.failed) == (8, 5, 3)
    assert summary.statuses == {"ok": 5, "truncated": 2, "refused": 1}
    assert summary.errors == {"the stream ended early": 2, "connection refused": 1}
    assert summary.ttft.n == 5
    assert summary.total_output_tokens == 100


def test_nothing_at_all_is_unknown_not_zero(context: Context) -> None:
    summary = summarize_stage([], context(10))
    assert summary.success_rate is None
    assert summary.duration_s is None
    assert summary.request_throughput is None
    assert summary.concurrency_peak is None
    assert summary.ttft.mean is None
    assert summary.steady is None


def test_one_unknown_count_makes_the_sum_unknown(answer: Answer, context: Context) -> None:
    summary = summarize_stage([answer(0), answer(1, output_tokens=None, tokens_from=None)], context(2))
    assert summary.total_output_tokens is None
    assert summary.output_throughput is None
    assert summary.total_input_tokens == 64


def test_answers_without_a_stream_have_only_e2el(answer: Answer, context: Context) -> None:
    summary = summarize_stage([answer(i, streamed=False, chunk_ns=[]) for i in range(3)], context(3))
    assert (summary.ttft.n, summary.itl.n, summary.tpot.n, summary.e2el.n) == (0, 0, 0, 3)
    assert summary.total_output_tokens == 60


def test_goodput_counts_answers_that_kept_every_limit(answer: Answer, context: Context) -> None:
    records = [answer(i, at_ms=100 * i, ttft_ms=40 if i % 4 else 80) for i in range(40)]
    summary = summarize_stage(records, context(40, goodput=Slo(ttft=50)))
    assert summary.request_goodput == pytest.approx(30 / (summary.duration_s or 0))


def test_a_closed_loop_has_no_schedule(answer: Answer, context: Context) -> None:
    summary = summarize_stage([answer(i, at_ms=300 * i, scheduled_ns=None) for i in range(9)], context(9, Inf()))
    assert summary.scheduled_rate is None
    assert summary.response.n == 0
    assert (summary.load.arrivals, summary.load.request_rate) == ("inf", None)


def test_the_load_says_what_was_asked(context: Context) -> None:
    gamma = summarize_stage([], context(7, Gamma(rate=3.0, burstiness=0.5))).load
    assert (gamma.arrivals, gamma.request_rate, gamma.burstiness, gamma.num_prompts) == ("gamma", 3.0, 0.5, 7)
    assert summarize_stage([], context(7, Poisson(rate=3.0))).load.burstiness == 1.0


def test_sources_of_token_counts_stay_apart(answer: Answer, context: Context) -> None:
    records = [answer(0), answer(1), answer(2, tokens_from=TokensFrom.CHUNKS)]
    assert summarize_stage(records, context(3)).tokens_from == {"server": 2, "chunks": 1}


def test_nonsense_times_are_not_our_crash(answer: Answer, context: Context) -> None:
    records = [answer(0, end_ns=0, chunk_ns=[5, 3, 3]), answer(1, sent_ns=None, started_ns=None, end_ns=None)]
    assert summarize_stage(records, context(2)).completed == 2


def test_a_run_keeps_its_stages_in_order(answer: Answer, context: Context) -> None:
    stages = [summarize_stage([answer()], context(n)) for n in (1, 2)]
    run = summarize(iter(stages), model_id="m", complete=False)
    assert run.stages == tuple(stages)
    assert (run.model_id, run.complete) == ("m", False)
