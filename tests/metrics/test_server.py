"""The server's side of a stage: levels within it, counters around it, and the doubts that follow."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import shared
from withstand.metrics.context import StageContext
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.server import Level, ServerSide, Watched, server_courses, server_side
from withstand.metrics.summarize import summarize_stage
from withstand.record import HOST, Record, Sample, Seen

S = 1_000_000_000
START, END = 10 * S, 20 * S


def look(at_s: float, source: str = "a", **values: float) -> Sample:
    return Sample(
        at_ns=round(at_s * S),
        source=source,
        engine=None if source == HOST else "vLLM",
        values={Seen(name): value for name, value in values.items()},
    )


def side(*samples: Sample) -> ServerSide:
    found = server_side(Watched(tuple(sorted(samples, key=lambda s: (s.at_ns, s.source))), START, END))
    assert found is not None
    return found


def test_nothing_seen_is_nothing_known() -> None:
    assert server_side(Watched((), START, END)) is None


def test_levels_are_of_the_stage_alone() -> None:
    seen = side(
        look(9, running=99), *(look(11 + i, running=i, kv_share=i / 10) for i in range(5)), look(21, running=99)
    )
    assert seen.running == Level(2, 4)
    assert seen.kv_share == Level(0.2, 0.4)
    assert seen.waiting is None
    assert seen.looks == 5


def test_two_servers_have_the_sum_of_their_requests_and_the_mean_of_their_shares() -> None:
    looks = [
        look(at, source, running=n, waiting=1, kv_share=n / 10) for at in (11, 12) for source, n in (("a", 2), ("b", 4))
    ]
    seen = side(*looks)
    assert seen.running == Level(6, 6)
    assert seen.in_engine == Level(8, 8)
    assert seen.kv_share == Level(pytest.approx(0.3), pytest.approx(0.3))


def test_counters_are_of_the_looks_just_before_and_just_after() -> None:
    seen = side(*(look(at_s, preemptions=n) for at_s, n in ((8, 0), (9.9, 5), (15, 6), (20.1, 8), (22, 90))))
    assert seen.preemptions == 3
    assert seen.whole


def test_where_nobody_looked_just_before_the_first_look_within_counts() -> None:
    seen = side(look(1, preemptions=0), look(11, preemptions=5), look(15, preemptions=6))
    assert seen.preemptions == 1
    assert not seen.whole


def test_a_server_that_was_started_anew_has_told_nothing() -> None:
    assert side(look(9.9, preemptions=5), look(15, preemptions=0), look(20, preemptions=9)).preemptions is None


def test_one_look_is_no_difference() -> None:
    assert side(look(15, preemptions=5)).preemptions is None


def test_a_counter_that_appears_has_begun_at_nothing() -> None:
    seen = side(look(9.9, prefix_queries=100), look(20, prefix_queries=200, prefix_hits=25))
    assert (seen.prefix_queries, seen.prefix_hits, seen.prefix_share) == (100, 25, 0.25)


def test_who_never_found_anything_has_no_counter_of_it() -> None:
    assert side(look(9.9, prefix_queries=100), look(20, prefix_queries=200)).prefix_share == 0


def test_means_are_sums_over_counts() -> None:
    counters = {"queue_s": 1.0, "queued": 10, "prefill_s": 2.0, "prefilled": 10, "ttft_s": 4.0, "answered": 10}
    seen = side(look(9.9, **counters), look(20.1, **{name: 3 * value for name, value in counters.items()}))
    assert (seen.queue_mean_ms, seen.prefill_mean_ms, seen.ttft_mean_ms) == pytest.approx((100, 200, 400))


def test_caches_that_came_are_counted_and_timed() -> None:
    before = {"transfers": 2, "transfer_s": 0.5, "transfer_bytes": 2e6}
    seen = side(look(9.9, **before), look(20.1, transfers=12, transfer_s=0.6, transfer_bytes=22e6, transfers_failed=1))
    assert (seen.transfers, seen.transfer_bytes, seen.transfers_failed) == (10, 20_000_000, 1)
    assert seen.transfer_mean_ms == pytest.approx(10)


def test_the_machine_is_no_engine() -> None:
    seen = side(look(11, HOST, cpu_share=0.5, memory_available_bytes=7), look(12, HOST, cpu_share=0.7))
    assert seen.cpu_share == Level(pytest.approx(0.6), 0.7)
    assert (seen.memory_available_bytes_min, seen.looks, seen.engines) == (7, 0, ())


def test_a_real_vllm_told_what_its_client_measured() -> None:
    """An H100 at 20 requests a second: nothing waited, a third of a percent was found in the cache."""
    from withstand.wire.engine_metrics import read_engine  # noqa: PLC0415 - only this test reads a real server's words

    looks = []
    for at_s, name in ((9.9, "before"), (20.1, "after")):
        engine, values = read_engine(shared(f"h100/vllm0.26_metrics_{name}_rate20.txt").read_text("utf-8"))
        looks.append(Sample(at_ns=round(at_s * S), source="a", engine=engine, values=values))
    seen = side(*looks)
    assert (seen.answered, seen.preemptions, seen.prefix_queries) == (1200, 0, 1_200_000)
    assert seen.prefix_share == pytest.approx(0.0033, abs=0.0001)
    assert seen.ttft_mean_ms == pytest.approx(75.3, abs=0.1)  # the client's mean was 83.2
    assert seen.prefill_mean_ms == pytest.approx(53.6, abs=0.1)
    assert seen.queue_mean_ms == pytest.approx(0.01, abs=0.01)


@given(
    st.lists(
        st.tuples(st.floats(0, 30), st.dictionaries(st.sampled_from(list(Seen)), st.floats(0, 1e9)), st.booleans())
    )
)
def test_no_samples_break_it(told: list[tuple[float, dict[Seen, float], bool]]) -> None:
    samples = [
        Sample(at_ns=round(at * S), source=str(i % 3), engine="vLLM" if engine else None, values=values)
        for i, (at, values, engine) in enumerate(sorted(told, key=lambda one: one[0]))
    ]
    watched = Watched(tuple(samples), START, END)
    seen = server_side(watched)
    assert seen is None or seen.prefix_share is None or seen.prefix_share >= 0
    for course in server_courses(watched, START).values():
        assert len(course.at_s) == len(course.value) <= 240


def test_courses_are_on_the_stages_own_seconds() -> None:
    watched = Watched(tuple(look(9.9 + i, running=i, preemptions=2 * i) for i in range(5)), START, END)
    courses = server_courses(watched, START)
    assert courses["running"].at_s == pytest.approx([0.9, 1.9, 2.9, 3.9])
    assert courses["preemptions"].value == [2, 2, 2, 2]


# Doubts.


Answer = Callable[..., Record]
Context = Callable[..., StageContext]


@pytest.fixture
def doubts(answer: Answer, context: Context) -> Callable[..., dict[DoubtKind, Doubt]]:
    """Of 100 answers in ten seconds, of which the server tells this."""

    def of(*samples: Sample, **facts: Any) -> dict[DoubtKind, Doubt]:
        records = [answer(i, at_ms=10_000 + 100 * i, **facts) for i in range(100)]
        watched = Watched(samples, START, END)
        found = summarize_stage(records, context(100, watched=watched)).doubts
        return {doubt.kind: doubt for doubt in found if doubt.kind is not DoubtKind.TOO_FEW_SAMPLES}

    return of


def looks(**per_second: float) -> list[Sample]:
    """Before, each second, after: counters grow, gauges stand."""
    return [look(9.9 + i, **{name: rate * i for name, rate in per_second.items()}) for i in range(12)]


Doubting = Callable[..., dict[DoubtKind, Doubt]]


def test_a_quiet_server_raises_none(doubts: Doubting) -> None:
    assert not doubts(*looks(preemptions=0, prefix_queries=1000, prefix_hits=199, answered=9))


def test_a_warm_prefix_cache(doubts: Doubting) -> None:
    found = doubts(*looks(prefix_queries=1000, prefix_hits=990))
    assert "10,890 of 11,000 prompt tokens (99 %)" in found[DoubtKind.PREFIX_CACHE].sentence


def test_conversations_repeat_their_history_by_nature(doubts: Doubting) -> None:
    found = doubts(*looks(prefix_queries=1000, prefix_hits=990), turn=1)
    assert DoubtKind.PREFIX_CACHE not in found


def test_what_the_answers_tell_of_the_cache_counts_more(doubts: Doubting) -> None:
    assert not doubts(*looks(prefix_queries=1000, prefix_hits=990), cached_tokens=0)


def test_evicted_requests(doubts: Doubting) -> None:
    assert DoubtKind.PREEMPTED not in doubts(look(9.9, preemptions=3), look(20.1, preemptions=3))
    assert "11 times during 100 requests" in doubts(*looks(preemptions=1))[DoubtKind.PREEMPTED].sentence


def test_requests_that_never_reach_the_engine(doubts: Doubting) -> None:
    slow = {"itl_ms": 50.0}
    reached = [look(10.5 + i, running=8, waiting=2) for i in range(9)]
    assert not doubts(*reached, **slow)
    held = [look(10.5 + i, running=2, waiting=0) for i in range(9)]
    assert "never had more than 2" in doubts(*held, **slow)[DoubtKind.HELD_BEFORE_SERVER].sentence
    assert not doubts(*held[:4], **slow)
    assert not doubts(*held)


def test_somebody_elses_load(doubts: Doubting) -> None:
    assert not doubts(*looks(answered=10))
    assert "121 answers" in doubts(*looks(answered=11))[DoubtKind.OTHER_TRAFFIC].sentence
    assert not doubts(look(11, answered=0), look(20.1, answered=500))
    decoding = [msgspec.structs.replace(sample, source="b") for sample in looks(answered=10)]
    assert not doubts(*looks(answered=10), *decoding)
