"""What a doubt takes away: the table is whole, its lines do not contradict themselves, and the page shows it."""

from pathlib import Path

import msgspec
import pytest

from withstand.metrics.catalogue import CATALOGUE
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.reach import TABLE, Circumstances, Effect, circumstances_of, effect, reach_markdown
from withstand.metrics.summary import ClientError, Distribution, Load, Off, StageSummary

NONE = Distribution(n=0)
STAGE = StageSummary(
    name="a", load=Load(), attempted=200, completed=190, failed=10, success_rate=0.95,
    ttft=NONE, tpot=NONE, itl=NONE, e2el=NONE, response=NONE, ttft_scheduled=NONE, lateness=NONE,
)  # fmt: skip
ANYTHING = Circumstances()


def found(kind: DoubtKind, number: str, of: Circumstances = ANYTHING, *, blocking: bool = False) -> Effect | None:
    return effect(Doubt(kind, "Something.", "Mend it.", blocking), number, of)


@pytest.mark.parametrize("kind", list(DoubtKind))
def test_every_kind_has_a_line_for_whatever_circumstances(kind: DoubtKind) -> None:
    *_, last = TABLE[kind]
    assert last.holds(Circumstances(missing_share=0.0))
    assert all(line.when for line in TABLE[kind]) or len(TABLE[kind]) == 1


@pytest.mark.parametrize("kind", list(DoubtKind))
def test_what_falls_in_any_case_is_not_unknown_too(kind: DoubtKind) -> None:
    for line in TABLE[kind]:
        assert not line.falls & line.unknown


@pytest.mark.parametrize("kind", list(DoubtKind))
def test_a_blocking_doubt_lets_some_number_fall(kind: DoubtKind) -> None:
    assert Effect.FALLS in {found(kind, number, blocking=True) for number in (*CATALOGUE, "speed_per_request")}


def test_a_statistic_goes_with_its_metric_and_a_tail_may_go_alone() -> None:
    assert found(DoubtKind.LATENCY_GROWS, "ttft.p50") is Effect.FALLS
    assert found(DoubtKind.TOO_FEW_SAMPLES, "e2el.p99") is Effect.UNKNOWN
    assert found(DoubtKind.TOO_FEW_SAMPLES, "e2el.p50") is None


def test_what_others_measure_goes_with_everything_and_with_nothing_of_ours() -> None:
    assert found(DoubtKind.IMPOSSIBLE, "speed_per_request.mean") is Effect.FALLS
    assert found(DoubtKind.LATENCY_GROWS, "speed_per_request.mean") is None


def test_a_stage_tells_its_circumstances() -> None:
    of = circumstances_of(STAGE)
    assert of == Circumstances(missing_share=pytest.approx(0.05))
    assert found(DoubtKind.REQUESTS_FAILED, "ttft.p95", of) is Effect.UNKNOWN
    capped = msgspec.structs.replace(
        STAGE,
        load=Load(max_concurrency=8),
        tpot=Distribution(n=9, mean=4.0, percentiles={"p50": 3.0}),
        client_error=ClientError(rate_share=0.2),
    )
    of = circumstances_of(capped)
    assert (of.capped, of.tpot_ms, of.less_load) == (True, 3.0, True)


def test_late_sends_take_the_response_time_and_a_thinned_load_takes_the_rates() -> None:
    late, thinned = Circumstances(), Circumstances(less_load=True)
    assert found(DoubtKind.SENDS_LATE, "response.p50", late) is Effect.UNKNOWN
    assert found(DoubtKind.SENDS_LATE, "ttft.p50", late, blocking=True) is None
    assert found(DoubtKind.SENDS_LATE, "output_throughput", thinned) is Effect.UNKNOWN
    assert found(DoubtKind.SENDS_LATE, "ttft.p50", thinned, blocking=True) is Effect.FALLS


def test_our_own_error_takes_only_what_it_may_have_moved() -> None:
    stage = msgspec.structs.replace(
        STAGE,
        e2el=Distribution(n=900, mean=170.0, percentiles={"p50": 160.0, "p90": 220.0, "p99": 300.0}),
        itl=Distribution(n=900, mean=5.0, percentiles={"p50": 5.0, "p90": 5.1, "p99": 5.3}),
        client_error=ClientError(e2el=Off(mean=0.2, p50=0.1, p99=2.0), itl=Off(mean=0.01, p50=0.01, p99=4.0)),
    )
    of = circumstances_of(stage)
    kept = ("e2el.mean", "e2el.p50", "e2el.p90", "e2el.p99", "itl.mean", "itl.p50")
    assert {found(DoubtKind.CLIENT_BOUND, number, of, blocking=True) for number in kept} == {Effect.BESIDE}
    assert found(DoubtKind.SHARED_READS, "itl.p50", of) is Effect.BESIDE
    assert found(DoubtKind.SHARED_READS, "itl.p99", of) is Effect.UNKNOWN
    moved = ("itl.p90", "itl.p99", "ttft.p50", "tpot.mean", "response.p50")
    assert {found(DoubtKind.CLIENT_BOUND, number, of, blocking=True) for number in moved} == {Effect.FALLS}


def test_our_own_error_does_not_take_what_so_few_answers_leave_open_anyway() -> None:
    """Such a number is not in the doubt's own sentence."""
    stage = msgspec.structs.replace(
        STAGE,
        completed=50,
        ttft=Distribution(n=50, mean=100.0, percentiles={"p50": 100.0, "p99": 120.0}),
        e2el=Distribution(n=50, mean=900.0, percentiles={"p50": 900.0, "p99": 990.0}),
        client_error=ClientError(ttft=Off(mean=2.0, p50=2.0, p99=7.0), e2el=Off(mean=200.0, p50=200.0, p99=2.0)),
    )
    of = circumstances_of(stage)
    effects = {n: found(DoubtKind.CLIENT_BOUND, n, of, blocking=True) for n in ("ttft.p50", "ttft.p99", "e2el.p50")}
    assert effects == {"ttft.p50": Effect.BESIDE, "ttft.p99": Effect.BESIDE, "e2el.p50": Effect.FALLS}


def test_the_page_has_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "auditing.md"
    assert reach_markdown() in page.read_text("utf-8")
