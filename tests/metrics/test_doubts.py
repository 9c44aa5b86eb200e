"""Each doubt: raised where it must be, and its neighbours silent. A clean run raises none."""

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from withstand.metrics.context import StageContext
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.server import Watched
from withstand.metrics.summarize import summarize_stage
from withstand.record import (
    HOST,
    Clock,
    ClockOffset,
    Health,
    Place,
    Record,
    Sample,
    Seen,
    Spread,
    Status,
    Step,
    TokensFrom,
)
from withstand.spec import Constant, Inf, Poisson, Ramp, Stage

MS = 1_000_000
NS = 1_000_000_000
Answer = Callable[..., Record]
Context = Callable[..., StageContext]
Judge = Callable[..., dict[DoubtKind, Doubt]]


@pytest.fixture
def paced(answer: Answer) -> Callable[..., list[Record]]:
    """400 answers, ten a second."""

    def make(**facts: Any) -> list[Record]:
        return [answer(i, at_ms=100 * i, **facts) for i in range(400)]

    return make


@pytest.fixture
def judge(context: Context) -> Judge:
    def of(records: list[Record], arrivals: Any = None, **circumstances: Any) -> dict[DoubtKind, Doubt]:
        doubts = summarize_stage(records, context(len(records), arrivals, **circumstances)).doubts
        assert len({doubt.kind for doubt in doubts}) == len(doubts), "each doubt is said once"
        return {doubt.kind: doubt for doubt in doubts}

    return of


def healthy(**facts: Any) -> Health:
    return Health(
        **{
            "worker": 0,
            "sent": 100,
            "finished": 100,
            "wall_ns": 10**10,
            "cpu_ns": 10**9,
            "forced_switches": 20,
            "clock_width_ns": 0,
            **facts,
        }
    )


def only(found: dict[DoubtKind, Doubt], kind: DoubtKind) -> Doubt:
    assert list(found) == [kind]
    assert found[kind].remedy
    return found[kind]


def test_a_clean_run_raises_none(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    assert not judge(paced(), health=(healthy(), healthy(worker=1)))


def test_a_clean_but_jittery_run_raises_none(judge: Judge, answer: Answer) -> None:
    rng = random.Random(4)
    records = [
        answer(
            i,
            at_ms=100 * i,
            ttft_ms=rng.gauss(50, 5),
            itl_ms=rng.gauss(10, 0.5),
            tokens=rng.randint(50, 150),
            started_ns=round(100 * i * MS + rng.expovariate(5) * MS),
        )
        for i in range(400)
    ]
    assert not judge(records, Poisson(rate=10.0), health=(healthy(loop_stall_ns_max=30 * MS),))


def test_some_failures(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    failed = [Record(id=i, stage=0, status=Status.HTTP_ERROR, error="HTTP 503: overloaded") for i in range(3)]
    found = only(judge([*paced(), *failed]), DoubtKind.REQUESTS_FAILED)
    assert "3 of 403 requests failed (0.7 %): 3 http_error. Most often (3): “HTTP 503: overloaded”." in found.sentence
    assert not found.blocking


@pytest.mark.parametrize(("apart", "stopped"), [(Status.LIMITED, False), (Status.CANCELLED, True)])
def test_the_error_that_is_told_is_one_of_the_failures(
    apart: Status, stopped: bool, judge: Judge, paced: Callable[..., list[Record]]
) -> None:
    """What a limiter said, or our own stop, is no answer of those that failed, however often it was heard."""
    others = [Record(id=400 + i, stage=0, status=apart, error=f"Something else {i % 2}") for i in range(30)]
    kinds = (Status.HTTP_ERROR, Status.HTTP_ERROR, Status.STREAM_ERROR)
    failed = [Record(id=500 + i, stage=0, status=kind, error="out of memory") for i, kind in enumerate(kinds)]
    told = judge([*paced(), *others, *failed], stopped_early=stopped)[DoubtKind.REQUESTS_FAILED].sentence
    assert "2 http_error, 1 stream_error. Most often (3): “out of memory”." in told
    mute = [Record(id=500, stage=0, status=Status.HTTP_ERROR)]
    told = judge([*paced(), *others, *mute], stopped_early=stopped)[DoubtKind.REQUESTS_FAILED].sentence
    assert "Most often" not in told


def test_all_failures_block(judge: Judge) -> None:
    found = judge([Record(id=i, stage=0, status=Status.REFUSED) for i in range(9)])
    assert only(found, DoubtKind.REQUESTS_FAILED).blocking


def test_a_limiter_is_no_engine_failure(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    limited = [Record(id=i, stage=0, status=Status.LIMITED, http_status=429) for i in range(100)]
    found = only(judge([*paced(), *limited]), DoubtKind.RATE_LIMITED)
    assert "100 of 500 requests (20 %) were answered 429: a limiter answered, not the engine" in found.sentence
    assert only(judge(limited), DoubtKind.RATE_LIMITED).blocking


@pytest.mark.parametrize(("limited", "good", "blocks"), [(39, 1, True), (4, 36, True), (3, 37, False)])
def test_a_limiter_that_set_what_was_measured_blocks(
    limited: int, good: int, blocks: bool, judge: Judge, answer: Answer
) -> None:
    """One good answer of 40 was a headline of req/s: the limiter's own number."""
    refused = [Record(id=i, stage=0, status=Status.LIMITED, http_status=429) for i in range(limited)]
    found = judge([*refused, *(answer(limited + i, at_ms=100 * i) for i in range(good))])
    assert found[DoubtKind.RATE_LIMITED].blocking is blocks


def ended(first: int, **numbers: int) -> list[Record]:
    kinds = [status for name, n in numbers.items() for status in [Status(name)] * n]
    return [Record(id=first + i, stage=0, status=status) for i, status in enumerate(kinds)]


@pytest.mark.parametrize(
    ("numbers", "kind", "told"),
    [
        (
            {"limited": 32, "http_error": 16, "reset": 20},
            DoubtKind.REQUESTS_FAILED,
            "In all 68 of 468 (14.5 %) are unknown: 36 failed, 32 answered 429.",
        ),
        (
            {"limited": 30, "http_error": 20},
            DoubtKind.RATE_LIMITED,
            "In all 50 of 450 (11.1 %) are unknown: 20 failed, 30 answered 429.",
        ),
        (
            {"limited": 20, "http_error": 10, "cancelled": 30},
            DoubtKind.STOPPED_EARLY,
            "In all 60 of 460 (13 %) are unknown: 10 failed, 20 answered 429, 30 cut on their way.",
        ),
    ],
)
def test_what_is_unknown_in_several_ways_counts_together(
    numbers: dict[str, int], kind: DoubtKind, told: str, judge: Judge, paced: Callable[..., list[Record]]
) -> None:
    """A p90 is as little known where 8 % were limited and 8 % failed as where 16 % failed."""
    found = judge([*paced(), *ended(400, **numbers)])
    assert [one for one, doubt in found.items() if doubt.blocking] == [kind]
    assert told in found[kind].sentence


def test_requests_that_are_gone_count_together_with_those_that_failed(
    paced: Callable[..., list[Record]], context: Context
) -> None:
    records = [*paced(), *ended(400, http_error=20)]
    doubts = summarize_stage(records, context(448, health=(healthy(finished=430),))).doubts
    (blocking,) = (doubt for doubt in doubts if doubt.blocking)
    assert blocking.kind is DoubtKind.REQUESTS_FAILED
    told = "In all 48 of 448 (10.7 %) are unknown: 20 failed, 10 without a record, 18 never taken up."
    assert told in blocking.sentence


@pytest.mark.parametrize("numbers", [{"limited": 20, "http_error": 20}, {"http_error": 3}, {"limited": 3}])
@pytest.mark.parametrize("circumstances", [{"stopped_early": True}, {"ended_by": "so it is", "cut_at_once": True}])
def test_what_we_stopped_on_purpose_is_not_among_the_unknown(
    numbers: dict[str, int], circumstances: dict[str, Any], judge: Judge, paced: Callable[..., list[Record]]
) -> None:
    records = [*paced(), *ended(400, cancelled=90, not_sent=90, **numbers)]
    assert not any(doubt.blocking for doubt in judge(records, **circumstances).values())


def test_fewer_than_asked(paced: Callable[..., list[Record]], context: Context) -> None:
    (found,) = summarize_stage(paced(), context(410)).doubts
    assert found.kind is DoubtKind.FEWER_THAN_ASKED
    assert "410 prompts were asked for and 400 were taken up: 10 are missing" in found.sentence


def test_many_fewer_than_asked_block(paced: Callable[..., list[Record]], context: Context) -> None:
    (found,) = (d for d in summarize_stage(paced(), context(445)).doubts if d.kind is DoubtKind.FEWER_THAN_ASKED)
    assert found.blocking


def test_records_that_are_gone_are_missed(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    found = only(judge(paced(), health=(healthy(finished=401),)), DoubtKind.RECORDS_MISSING)
    assert "1 of 401 requests that ended (0.2 %) have no record that can be read" in found.sentence
    assert not found.blocking
    assert judge(paced(), health=(healthy(finished=300), healthy(finished=145)))[DoubtKind.RECORDS_MISSING].blocking


def test_damaged_lines_are_no_doubt_where_none_is_missing(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    assert not judge(paced(), health=(healthy(finished=400),), damaged_lines=9)
    assert DoubtKind.RECORDS_MISSING not in judge([], health=(healthy(finished=0),))
    found = only(judge(paced(), damaged_lines=9), DoubtKind.RECORDS_MISSING)
    assert "9 lines of the run's records cannot be read" in found.sentence


def test_failures_of_a_closed_loop_are_slowed_down_and_that_is_said(judge: Judge) -> None:
    gone = [Record(id=i, stage=0, status=Status.REFUSED) for i in range(9)]
    closed = Stage(name="steady", arrivals=Inf(), max_concurrency=2, num_prompts=9)
    pauses = "its slot pauses, 10 ms and up to 1 s"
    assert pauses in judge(gone, stage=closed)[DoubtKind.REQUESTS_FAILED].sentence
    assert pauses not in judge(gone)[DoubtKind.REQUESTS_FAILED].sentence


def test_what_is_missing_is_said_once(paced: Callable[..., list[Record]], context: Context) -> None:
    doubts = summarize_stage(paced()[:300], context(400, health=(healthy(finished=400),))).doubts
    assert DoubtKind.FEWER_THAN_ASKED not in {doubt.kind for doubt in doubts}


def test_later_turns_do_not_stand_in_for_missing_prompts(answer: Answer, context: Context) -> None:
    records = [answer(i, at_ms=100 * i, turn=i % 2, session=i // 2) for i in range(400)]
    assert not summarize_stage(records, context(200)).doubts
    assert summarize_stage(records, context(400)).doubts[0].kind is DoubtKind.FEWER_THAN_ASKED


def test_stopped_early_accounts_for_what_was_not_sent(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    unsent = [Record(id=i, stage=0, status=status) for i in range(9) for status in (Status.NOT_SENT, Status.CANCELLED)]
    assert only(judge([*paced(), *unsent], stopped_early=True), DoubtKind.STOPPED_EARLY)
    assert "9 not_sent" in judge([*paced(), *unsent])[DoubtKind.REQUESTS_FAILED].sentence


def test_a_stage_of_which_all_was_cut_has_no_times_of_the_quick(judge: Judge) -> None:
    found = judge([Record(id=i, stage=0, status=Status.CANCELLED) for i in range(16)])[DoubtKind.STOPPED_EARLY]
    assert "16 of 16 requests were cut on their way; none was answered" in found.sentence
    assert "the quick" not in found.sentence


def test_requests_that_we_cut_are_no_proof_of_too_much_load(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    """A stage that ends since its promise is kept, or since nothing more would tell, may be cut on its way too."""
    cut = [Record(id=400 + i, stage=0, status=Status.CANCELLED) for i in range(100)]
    for why, at_once in (("what is promised is kept", False), ("not known in this time", True)):
        found = judge([*paced(), *cut], ended_by=why, cut_at_once=at_once)[DoubtKind.STOPPED_EARLY]
        assert found.sentence.startswith(f"The stage ended early ({why}), and ")
        assert "too much" not in found.remedy
        assert found.blocking is not at_once, "a wait for answers that was too short leaves the quick ones only"


def test_a_lost_worker_blocks(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    found = only(judge(paced(), health=(healthy(), healthy(worker=1, lost=True))), DoubtKind.WORKER_LOST)
    assert found.blocking
    assert "1 of 2 workers died in mid-stage (worker 1)" in found.sentence
    far = Place(host="gamma", niceness=0, clock=ClockOffset(offset_ns=5, error_ns=9))
    found = only(judge(paced(), health=(healthy(), healthy(worker=1, lost=True, place=far))), DoubtKind.WORKER_LOST)
    assert "(worker 1 on node gamma)" in found.sentence


def test_a_busy_worker_whose_stamps_are_true_and_sends_on_time_is_no_doubt(
    judge: Judge, paced: Callable[..., list[Record]]
) -> None:
    busy = healthy(cpu_ns=99 * 10**8, runqueue_wait_ns=3 * 10**9, gc_pause_ns_max=40 * MS, loop_stall_ns_max=50 * MS)
    assert not judge(paced(), health=(busy,))


def late_looks(answer: Answer, unsure: int) -> list[Record]:
    """Each answer has ``unsure`` events that lay beside the one after them."""
    chunks = [[(100 * i + 50 + 10 * k) * MS for k in range(40)] for i in range(400)]
    for stamps in chunks:
        stamps[10 : 10 + unsure] = [stamps[10 + unsure]] * unsure
    return [
        answer(i, at_ms=100 * i, tokens=40, chunk_ns=stamps, unsure=list(range(10, 10 + unsure)))
        for i, stamps in enumerate(chunks)
    ]


def test_a_client_that_looked_away_too_often_blocks(judge: Judge, answer: Answer) -> None:
    """Three of forty events lie in their sockets: 10 % of the gaps, and the p99 is among them."""
    busy = healthy(cpu_ns=97 * 10**8, runqueue_wait_ns=2 * 10**8, gc_pause_ns_max=40 * MS)
    found = judge(late_looks(answer, 3), health=(healthy(worker=1), busy))
    assert set(found) == {DoubtKind.CLIENT_BOUND, DoubtKind.SHARED_READS}
    doubt = found[DoubtKind.CLIENT_BOUND]
    assert doubt.blocking
    assert "ITL p99 (10.0 ms) by up to 30.00 ms" in doubt.sentence
    assert (
        "Worker 0 used 97 % of a core and waited for a core 2 % of the time, others had it and collected garbage "
        "for 40.0 ms at once." in doubt.sentence
    )
    assert doubt.remedy.endswith("Now: 2 workers.")


BUSY = {"cpu_ns": 97 * 10**8}
STARVED = {"runqueue_wait_ns": 2 * 10**9}


@pytest.mark.parametrize(
    ("facts", "circumstances", "remedy"),
    [
        (BUSY, {"cores": 4}, "Use more workers, or free the machine of other work. Now: 1 worker on 4 cores."),
        (BUSY, {"cores": 1}, "Free the machine of other work, or run on one with more cores. Now: 1 worker on 1 core."),
        (STARVED, {"cores": 4}, "Free the machine of other work, or run on one with more cores. Now: 1 worker on 4"),
        (STARVED, {"cores": 4, "beside_server": True}, "The server runs on it too and was short of cores as well."),
    ],
)
def test_advice_follows_the_cause(
    facts: dict[str, int], circumstances: dict[str, Any], remedy: str, judge: Judge, answer: Answer
) -> None:
    doubt = judge(late_looks(answer, 3), health=(healthy(**facts),), **circumstances)[DoubtKind.CLIENT_BOUND]
    assert remedy in doubt.remedy


def test_events_that_always_come_by_four_may_be_the_servers_doing(judge: Judge, answer: Answer) -> None:
    """A client that looks away catches now one event, now several."""
    records = [
        answer(i, at_ms=100 * i, tokens=40, chunk_ns=[(100 * i + 50 + 40 * (k // 4)) * MS for k in range(40)],
               unsure=[k for k in range(40) if k % 4 < 3])
        for i in range(400)
    ]  # fmt: skip
    found = judge(records, health=(healthy(),))
    assert "Most reads hold 4 events: the server may write so many" in found[DoubtKind.SHARED_READS].sentence
    whose = "The client's own error, or a server that writes 4 events at once, could change"
    assert found[DoubtKind.CLIENT_BOUND].sentence.startswith(whose)
    assert "Most reads" not in judge(late_looks(answer, 3))[DoubtKind.SHARED_READS].sentence


def test_a_cause_is_said_once_of_a_stage(judge: Judge, answer: Answer) -> None:
    late = [msgspec.structs.replace(r, started_ns=(r.sent_ns or 0) + 60 * MS) for r in late_looks(answer, 3)]
    found = judge(late, health=(healthy(**STARVED),))
    assert "waited for a core 20 %" in found[DoubtKind.CLIENT_BOUND].sentence
    assert "waited for a core" not in found[DoubtKind.SENDS_LATE].sentence
    assert found[DoubtKind.SENDS_LATE].remedy == found[DoubtKind.CLIENT_BOUND].remedy


def test_an_event_that_lay_for_once_is_counted_and_no_doubt(judge: Judge, answer: Answer) -> None:
    records = [*late_looks(answer, 1)[:1], *late_looks(answer, 0)[1:]]
    assert not judge(records, health=(healthy(),))


@pytest.mark.parametrize(("late_ms", "raised", "blocking"), [(2.0, False, False), (4.0, True, False), (60, True, True)])
def test_late_sends(late_ms: float, raised: bool, blocking: bool, judge: Judge, answer: Answer) -> None:
    """Response times are 240 ms + lateness: 1 % is about 2.4 ms."""
    records = [answer(i, at_ms=100 * i + late_ms, scheduled_ns=100 * i * MS, ready_ns=100 * i * MS) for i in range(400)]
    found = judge(records)
    assert (DoubtKind.SENDS_LATE in found) is raised
    assert any(doubt.blocking for doubt in found.values()) is blocking
    assert DoubtKind.SENDS_LATE not in judge(records, Inf())


def test_a_schedule_that_we_draw_out_is_another_load(judge: Judge, answer: Answer) -> None:
    """Each send is 4 ms later than the one before: 100 a second become 96 … the stage takes 4 % longer."""
    records = [
        answer(i, at_ms=104 * i, ready_ns=100 * i * MS, scheduled_ns=100 * i * MS, started_ns=104 * i * MS)
        for i in range(400)
    ]
    waited = healthy(runqueue_wait_ns=3_100_000_000)
    found = only(judge(records, health=(waited,)), DoubtKind.SENDS_LATE)
    assert found.blocking
    assert "fell behind the schedule by 3.6 % of its length" in found.sentence
    assert "Worker 0 waited for a core 31 % of the time, others had it." in found.sentence


@pytest.mark.parametrize(("late_ms", "raised", "blocking"), [(1, False, False), (12, True, False), (60, True, True)])
def test_slots_that_wait_for_us_offer_less_load(
    late_ms: float, raised: bool, blocking: bool, answer: Answer, context: Context
) -> None:
    """Two users without a schedule; an answer takes 240 ms."""
    cycle_ms = 240 + late_ms
    records = [
        answer(i, at_ms=cycle_ms * (i // 2) + late_ms, ready_ns=round(cycle_ms * (i // 2) * MS), scheduled_ns=None)
        for i in range(400)
    ]
    closed = context(400, Inf())
    closed = msgspec.structs.replace(closed, stage=msgspec.structs.replace(closed.stage, max_concurrency=2))
    found = {doubt.kind: doubt for doubt in summarize_stage(records, closed).doubts}
    assert set(found) == ({DoubtKind.SENDS_LATE} if raised else set())
    if raised:
        assert found[DoubtKind.SENDS_LATE].blocking is blocking
        assert "between an answer and the next request" in found[DoubtKind.SENDS_LATE].sentence


@pytest.mark.parametrize(
    ("clock", "stall_ms", "raised"),
    [(Clock.USER, 0.02, None), (Clock.USER, 0.3, "doubt"), (Clock.USER, 8, "block"), (Clock.KERNEL, 80, None)],
)
def test_a_clock_of_our_own(
    clock: Clock, stall_ms: float, raised: str | None, judge: Judge, paced: Callable[..., list[Record]]
) -> None:
    """A median TTFT of 50 ms and a median ITL of 10 ms: a stamp is late by two turns of the loop at most."""
    found = judge(paced(clock=clock), health=(healthy(loop_stall_ns_max=round(stall_ms * MS)),))
    kinds = {"doubt": {DoubtKind.CLOCK_LAGGED}, "block": {DoubtKind.CLIENT_BOUND}}
    assert set(found) == kinds.get(raised or "", set())


def test_looks_that_were_seldom_late_say_little_of_a_median(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    blind = Spread(n=8000, p50_ns=20_000, p99_ns=40_000, max_ns=30 * MS)
    found = only(judge(paced(clock=Clock.USER), health=(healthy(blind=blind),)), DoubtKind.CLOCK_LAGGED)
    assert "ITL p50" not in found.sentence
    assert "400 of 400 answers were stamped by the program's own clock" in found.sentence


def queue(answer: Answer, interval_ms: float, service_ms: float) -> list[Record]:
    """One server, one request at a time: what waits, waits in a row."""
    records, free_ms = [], 0.0
    for i in range(400):
        at_ms = i * interval_ms
        free_ms = max(free_ms, at_ms) + service_ms
        records.append(answer(i, at_ms=at_ms, ttft_ms=free_ms - at_ms - 90, itl_ms=10, tokens=10))
    return records


def test_past_saturation_the_rate_is_not_achieved(judge: Judge, answer: Answer) -> None:
    found = only(judge(queue(answer, 100, 125)), DoubtKind.RATE_NOT_ACHIEVED)
    assert "Requests came at 10.0/s and ended at 8.00/s (80 %)" in found.sentence
    assert not found.blocking


def test_a_cap_of_our_own_is_named(answer: Answer, context: Context) -> None:
    records = queue(answer, 100, 125)
    capped = context(400)
    capped = msgspec.structs.replace(capped, stage=msgspec.structs.replace(capped.stage, max_concurrency=4))
    (found,) = summarize_stage(records, capped).doubts
    assert "(80 %) with at most 4 at once" in found.sentence


def test_a_queue_that_grows_slowly(judge: Judge, answer: Answer) -> None:
    found = only(judge(queue(answer, 100, 102)), DoubtKind.LATENCY_GROWS)
    assert "median response time rose from" in found.sentence


def test_a_server_just_fast_enough_is_left_alone(judge: Judge, answer: Answer) -> None:
    assert not judge(queue(answer, 100, 99))


def test_a_rising_load_must_raise_latency(judge: Judge, answer: Answer) -> None:
    assert not judge(queue(answer, 100, 125), Ramp(start_rate=1, end_rate=20, duration_s=40))


def test_a_closed_loop_has_no_rate_to_achieve(judge: Judge, answer: Answer) -> None:
    assert not judge(queue(answer, 100, 125), Inf())


def test_long_answers_in_a_short_test_are_no_overload(judge: Judge, answer: Answer) -> None:
    rng = random.Random(9)
    records = [answer(i, at_ms=25 * i, tokens=rng.randint(10, 1000)) for i in range(400)]
    found = only(judge(records, Constant(rate=40.0)), DoubtKind.TOO_SHORT_TO_TELL)
    assert "ended after the last request was due" in found.sentence
    assert not found.blocking


@pytest.mark.parametrize(
    ("busy", "beside_server", "named"), [(0.97, True, True), (0.97, False, False), (0.5, True, False)]
)
def test_an_engine_that_had_no_core_is_named_where_a_stage_is_too_short(
    busy: float, beside_server: bool, named: bool, judge: Judge, answer: Answer
) -> None:
    rng = random.Random(9)
    records = [answer(i, at_ms=25 * i, tokens=rng.randint(10, 1000)) for i in range(400)]
    samples = tuple(Sample(at_ns=s * NS, source=HOST, values={Seen.CPU_SHARE: busy}) for s in range(10))
    circumstances = {"watched": Watched(samples, 0, 10 * NS), "beside_server": beside_server}
    found = only(judge(records, Constant(rate=40.0), **circumstances), DoubtKind.TOO_SHORT_TO_TELL)
    assert ("whose cores were 97 % busy" in found.sentence) is named


def test_a_burst_past_saturation_that_ends_soon_is_not_left_alone(judge: Judge, answer: Answer) -> None:
    """As in a demo: forty requests in twelve seconds at a server that takes two a second."""
    found = judge(queue(answer, 300, 500)[:40], Constant(rate=1 / 0.3))
    assert {DoubtKind.TOO_SHORT_TO_TELL, DoubtKind.RATE_NOT_ACHIEVED} & set(found)


def test_an_answer_in_one_piece_is_not_streamed(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    found = only(judge(paced(itl_ms=0)), DoubtKind.NOT_STREAMED)
    assert "400 of 400 answers of 8 tokens or more (100 %) came in one piece" in found.sentence


def test_one_pace_for_all_lengths_is_a_hops(judge: Judge, answer: Answer) -> None:
    records = [answer(i, at_ms=100 * i, tokens=10 + i % 40, itl_ms=500 / (9 + i % 40)) for i in range(400)]
    found = only(judge(records), DoubtKind.NOT_STREAMED)
    assert "E2EL - TTFT is 500 … 500 ms (p10 … p90) although the answers have 13.9 … 45.1 tokens" in found.sentence


def test_equal_lengths_at_one_pace_are_an_engine(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    assert not judge(paced(tokens=50))


def test_all_at_once_after_a_long_wait_is_a_hop_that_buffers(judge: Judge, answer: Answer) -> None:
    rng = random.Random(6)
    records = [
        answer(i, at_ms=100 * i, ttft_ms=10 * tokens, itl_ms=rng.uniform(0.01, 0.03), tokens=tokens)
        for i, tokens in enumerate(rng.choices(range(20, 60), k=400))
    ]
    assert "ms a token: a hop holds the answer back" in only(judge(records), DoubtKind.HOP_BUFFERS).sentence


def test_a_fast_engine_is_no_buffering_hop(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    assert not judge(paced(ttft_ms=20, itl_ms=0.5))


def test_bursts_are_a_hops(judge: Judge, answer: Answer) -> None:
    """Five tokens every 50 ms, a little apart from each other."""
    records = [
        answer(i, at_ms=100 * i, chunk_ns=[(100 * i + 50 + 50 * (k // 5)) * MS + k % 5 * 9000 for k in range(20)])
        for i in range(400)
    ]
    assert "events come in bursts" in only(judge(records), DoubtKind.HOP_BUFFERS).sentence


def test_gaps_that_were_not_seen(judge: Judge, answer: Answer) -> None:
    found = only(judge(late_looks(answer, 1)), DoubtKind.SHARED_READS)
    assert "800 of 15,600 gaps (5.1 %) touch an event that lay in its socket" in found.sentence


def test_pieces_of_several_events_are_the_servers(judge: Judge, answer: Answer) -> None:
    records = [
        answer(i, at_ms=100 * i, tokens=40, chunk_ns=[(100 * i + 50 + 10 * max(6, k)) * MS for k in range(40)])
        for i in range(400)
    ]
    assert not judge(records, health=(healthy(),))


def test_several_tokens_an_event_by_the_servers_word(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    found = only(judge(paced(tokens=5, itl_ms=40, output_tokens=20, requested_output_tokens=20,
                             chunk_tokens=[4] * 5)), DoubtKind.SEVERAL_TOKENS_AN_EVENT)  # fmt: skip
    assert "8,000 tokens into 2,000 events, 4.00 in each" in found.sentence
    assert "or the ITL per token" in found.remedy
    assert not judge(paced(chunk_tokens=[1] * 20))


def test_more_claimed_than_counted(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    found = only(judge(paced(output_tokens=100, requested_output_tokens=100)), DoubtKind.CLAIMED_NOT_COUNTED)
    assert "claims 40,000 output tokens, and 8,000 events with output came (a ratio of 5.00)" in found.sentence


@pytest.mark.parametrize(("of_steps", "explained"), [(16, True), (7, False), (40, False)])
def test_tokens_that_an_agent_does_not_send_are_no_riddle(
    of_steps: int, explained: bool, judge: Judge, paced: Callable[..., list[Record]]
) -> None:
    """A schema's JSON is made and not sent: a tokenizer cannot help, and no event holds several tokens."""
    steps = [Step(kind="model", took_ns=MS, output_tokens=of_steps - 5), Step(kind="model", output_tokens=5)]
    found = judge(paced(tokens=7, output_tokens=16, requested_output_tokens=None, steps=steps))
    doubt = found[DoubtKind.CLAIMED_NOT_COUNTED]
    assert ("it does not send all that its model makes" in doubt.sentence) is explained
    assert ("events carry several tokens" in doubt.sentence) is not explained
    assert ("--tokenizer" in doubt.remedy) is not explained
    assert "6,400 output tokens" in doubt.sentence
    assert "2,800 events" in doubt.sentence


def test_a_first_event_of_several_tokens_is_said_to_lower_tpot(
    judge: Judge, paced: Callable[..., list[Record]]
) -> None:
    found = judge(paced(tokens=5, output_tokens=20, requested_output_tokens=20))[DoubtKind.CLAIMED_NOT_COUNTED]
    assert "TPOT, which takes the first event for one token, is 15.8 % too low" in found.sentence


def test_the_text_bears_the_claim_out(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    facts = paced(tokens=5, itl_ms=40, output_tokens=20, requested_output_tokens=20, text_tokens=19)
    found = only(judge(facts), DoubtKind.SEVERAL_TOKENS_AN_EVENT)
    assert "8,000 tokens into 2,000 events, 4.00 in each by its own count, which the text bears out" in found.sentence
    assert "per token it is not known" in found.remedy


def test_the_text_does_not_bear_the_claim_out(judge: Judge, answer: Answer) -> None:
    facts = [
        answer(i, at_ms=100 * i, output_tokens=200 if i % 4 else 20, requested_output_tokens=None, text_tokens=20,
               reasoning_tokens=180 if i % 4 else 0)
        for i in range(400)
    ]  # fmt: skip
    found = judge(facts, tokenizer="tokenizer.json of m")[DoubtKind.CLAIMED_NOT_COUNTED]
    assert (
        "claims 62,000 output tokens for 400 answers, and their text has 8,000 by tokenizer.json of m "
        "(a ratio of 7.75), 300 of 400 answers differing, most of all request 1. "
        "Of all its tokens 54,000 are reasoning, it says."
    ) in found.sentence


@pytest.mark.parametrize(
    ("claimed", "reasoning", "blocking"), [(100, 0, True), (25, 0, False), (5, 0, True), (100, 80, False)]
)
def test_a_claim_that_the_text_refutes_blocks(
    claimed: int, reasoning: int, blocking: bool, judge: Judge, paced: Callable[..., list[Record]]
) -> None:
    """Twenty tokens by the model's own tokenizer; reasoning that is not sent is counted, but no false claim."""
    facts = paced(output_tokens=claimed, requested_output_tokens=None, text_tokens=20, reasoning_tokens=reasoning)
    assert judge(facts)[DoubtKind.CLAIMED_NOT_COUNTED].blocking is blocking


def test_another_models_tokenizer_is_no_witness(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    assert not judge(paced(text_tokens=30), tokenizer="tiktoken", tokenizer_exact=False)


def test_fewer_claimed_than_counted(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    found = only(judge(paced(output_tokens=10, requested_output_tokens=10)), DoubtKind.CLAIMED_NOT_COUNTED)
    assert "the claim is too low" in found.sentence


def test_an_end_token_without_text_is_no_claim(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    assert not judge(paced(tokens=7, output_tokens=8, requested_output_tokens=8))


def test_counts_that_are_estimates(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    found = only(judge(paced(tokens_from=TokensFrom.CHUNKS)), DoubtKind.TOKENS_ESTIMATED)
    assert "400 by events" in found.sentence
    by_tokenizer = paced(tokens_from=TokensFrom.TOKENIZER)
    assert not judge(by_tokenizer)
    assert "tiktoken" in judge(by_tokenizer, tokenizer="tiktoken", tokenizer_exact=False)[
        DoubtKind.TOKENS_ESTIMATED
    ].sentence  # fmt: skip


def test_lengths_other_than_prescribed(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    short = paced(requested_output_tokens=100, finish_reason="stop")
    found = only(judge(short, fixed_lengths=True), DoubtKind.LENGTHS_DIFFER)
    assert "40,000 tokens asked, 8,000 returned by the server's count (20 %)" in found.sentence
    assert not judge(short), "an answer may end by itself where nothing else was prescribed"


def test_lengths_are_judged_by_the_text_where_the_server_does_not_count(
    judge: Judge, paced: Callable[..., list[Record]]
) -> None:
    short = paced(tokens_from=TokensFrom.TOKENIZER, requested_output_tokens=100)
    found = only(judge(short, fixed_lengths=True), DoubtKind.LENGTHS_DIFFER)
    assert "8,000 returned by the tokenizer's count (20 %)" in found.sentence
    assert DoubtKind.LENGTHS_DIFFER not in judge(short, fixed_lengths=True, tokenizer_exact=False)
    cut_anew = paced(tokens_from=TokensFrom.TOKENIZER, requested_output_tokens=21)
    assert not judge(cut_anew, fixed_lengths=True)


def test_lengths_that_cannot_be(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    assert only(judge(paced(requested_output_tokens=10)), DoubtKind.LENGTHS_DIFFER), "longer than the most"
    assert only(judge(paced(requested_output_tokens=90)), DoubtKind.LENGTHS_DIFFER), "cut below the length it claims"


@pytest.mark.parametrize(("others", "raised"), [(4, False), (40, True)])
def test_mixed_finish_reasons(others: int, raised: bool, judge: Judge, answer: Answer) -> None:
    records = [answer(i, at_ms=100 * i, finish_reason="stop" if i < others else "length") for i in range(400)]
    found = judge(records)
    assert set(found) == ({DoubtKind.FINISH_REASONS_MIXED} if raised else set())
    if raised:
        assert "360 length (90 %), 40 stop (10 %)" in found[DoubtKind.FINISH_REASONS_MIXED].sentence


@pytest.mark.parametrize(("cached", "raised"), [(0, False), (6, False), (16, True)])
def test_the_prefix_cache_by_the_servers_word(
    cached: int, raised: bool, judge: Judge, paced: Callable[..., list[Record]]
) -> None:
    found = judge(paced(cached_tokens=cached), identical_prompts=200)
    assert set(found) == ({DoubtKind.PREFIX_CACHE} if raised else set())
    if raised:
        assert "6,400 of 12,800 prompt tokens (50 %)" in found[DoubtKind.PREFIX_CACHE].sentence


@pytest.mark.parametrize("repeatable", [True, False])
def test_prompts_that_other_runs_send_too_may_be_warm_from_them(
    repeatable: bool, judge: Judge, paced: Callable[..., list[Record]]
) -> None:
    found = only(judge(paced(cached_tokens=30), repeatable=repeatable), DoubtKind.PREFIX_CACHE)
    assert ("Other runs send the same prompts" in found.sentence) is repeatable


def test_identical_prompts_where_the_server_does_not_tell(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    found = only(judge(paced(), identical_prompts=100), DoubtKind.PREFIX_CACHE)
    assert "100 of 400 requests (25 %) repeat a prompt" in found.sentence
    assert not judge(paced(), identical_prompts=4)


def test_later_turns_repeat_their_history_by_nature(judge: Judge, answer: Answer) -> None:
    records = [answer(i, at_ms=100 * i, turn=i % 2, cached_tokens=30 * (i % 2)) for i in range(400)]
    assert DoubtKind.PREFIX_CACHE not in judge(records)


def test_warmup_missing(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    assert only(judge(paced(), warmed_up=False), DoubtKind.WARMUP_MISSING)


def test_simulated(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    assert only(judge(paced(), simulated=True), DoubtKind.SIMULATED)


def test_too_few_samples_is_said_once_for_all_percentiles(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    found = only(judge(paced()[:50]), DoubtKind.TOO_FEW_SAMPLES)
    assert found.sentence.startswith("50 answers cannot bound p95 (needs 72), p99 (needs 368)")
    assert "at least 368" in found.remedy
    assert not judge(paced()[:368])
    again = only(judge(paced()[:4], cycles=6), DoubtKind.TOO_FEW_SAMPLES)
    assert again.remedy.startswith("Raise `cycles` above 6")


ERROR_TEXT = "Backend Error (http://10.0.0.1:8000/v1/chat/completions): Expecting value: line 1 column 1 (char 0)"


def test_an_error_played_as_content(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    """The published “13x”: eleven words of an error, 50 ms apart, with HTTP 200."""
    found = only(judge(paced(tokens=11, itl_ms=50, text_head=ERROR_TEXT)), DoubtKind.ERROR_TEXT)
    assert "400 of 400 good answers (100 %) read like an error, 400 of them alike: “backend error" in found.sentence


def test_a_few_error_texts_among_good_answers(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    texts = [f"Rate limit exceeded, retry in {i} s" for i in range(40)]
    records = paced()[40:] + [r for text in texts for r in paced(text_head=text)[:1]]
    assert DoubtKind.ERROR_TEXT in judge(records)


def test_answers_about_errors_are_no_errors(judge: Judge, answer: Answer) -> None:
    """Each about something else, as answers of a model are."""
    words = ("Python", "Rust", "nginx", "TCP", "SQL", "Linux", "vLLM", "CUDA", "YAML", "pytest")
    heads = [f"An error in {words[i % 10]} or {words[i // 10 % 10]} can have" for i in range(400)]
    records = [answer(i, at_ms=100 * i, text_head=heads[i] if i % 4 == 0 else "Once upon a time") for i in range(400)]
    assert not judge(records)


def test_blocking_doubts_come_first(judge: Judge, paced: Callable[..., list[Record]]) -> None:
    doubts = judge(paced(), warmed_up=False, health=(healthy(lost=True),))
    assert list(doubts) == [DoubtKind.WORKER_LOST, DoubtKind.WARMUP_MISSING]


REAL = {
    "h100/vllm0.26_rate1.json": {DoubtKind.TOO_FEW_SAMPLES},
    "h100/vllm0.26_rate10.json.gz": set(),
    "h100/vllm0.26_rate20.json.gz": set(),
    "h100/sglang0.5.14_rate30.json.gz": {DoubtKind.REQUESTS_FAILED},
}


@pytest.mark.parametrize("name", REAL)
def test_real_runs_raise_only_what_is_true(
    name: str, vllm_file: Callable[[str], tuple[dict[str, Any], list[Record]]], judge: Judge
) -> None:
    result, records = vllm_file(name)
    assert set(judge(records, Poisson(rate=float(result["request_rate"])))) == REAL[name]
