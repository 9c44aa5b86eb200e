"""Whether a queue grows, by how many are on their way: on queues in virtual time whose truth is known."""

import pytest
from msgspec.structs import replace

from withstand.metrics.backlog import growth_in
from withstand.metrics.context import StageContext
from withstand.metrics.doubts import DoubtKind
from withstand.metrics.flow import Flow
from withstand.metrics.summarize import summarize_stage
from withstand.record import Status
from withstand.spec import Poisson, Stage
from withstand.testing.queues import NS, Queue, Times, batched, exponential, fixed


def flow_of(slots: int, times: Times, rate_rps: float, until_s: float, seed: int) -> Flow:
    flow = Flow()
    for record in Queue(slots, times).records(rate_rps, seed):
        assert record.sent_ns is not None
        if record.sent_ns > until_s * NS:
            return flow
        flow.add(record)
    raise AssertionError


@pytest.mark.parametrize("load", [1.3, 1.6, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_queue_without_end_grows(load: float, seed: int) -> None:
    found = growth_in(flow_of(8, exponential(0.1, 0.9), 8 * load, 300, seed))
    assert found is not None
    assert found.late > 1.3 * found.early


@pytest.mark.parametrize(
    ("slots", "times", "rate_rps"),
    [
        (8, exponential(0.1, 0.9), 5.0),
        (1_000, fixed(1, 29), 10.0),
        (1_000, exponential(1, 29), 10.0),
        (1_000, batched(1, 5, 0.05), 10.0),
    ],
    ids=["short answers", "answers of half a minute", "of very different lengths", "slower the more there are"],
)
def test_an_empty_server_that_fills_is_no_queue_that_grows(slots: int, times: Times, rate_rps: float) -> None:
    """Every length that a stage may have: also those that end while it still fills."""
    found = [
        (until_s, seed)
        for seed in range(4)
        for until_s in (10, 20, 35, 50, 70, 100, 200)
        if growth_in(flow_of(slots, times, rate_rps, until_s, seed))
    ]
    assert found == []


def test_it_is_a_doubt_where_so_few_have_ended_that_their_times_do_not_show_it() -> None:
    """Two minutes at 100 a second, and three are answered in that time: what ends later was cut."""
    slow = Queue(1, fixed(1, 20)).answers(100.0, 1, 12_000)
    cut = [replace(r, status=Status.CANCELLED, chunk_ns=[], end_ns=121 * NS) for r in slow[3:]]
    stage = Stage(name="s", arrivals=Poisson(100.0), duration_s=120.0)
    summary = summarize_stage([*slow[:3], *cut], StageContext(stage=stage, stopped_early=True))
    said = next(doubt.sentence for doubt in summary.doubts if doubt.kind is DoubtKind.LATENCY_GROWS)
    assert "requests were on their way: a queue grows" in said
