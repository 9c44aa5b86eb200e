"""The self-test finds what is wrong with a client, whatever it is, and covers everything that a server may do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from withstand.errors import UsageError
from withstand.metrics.doubts import DoubtKind
from withstand.record import Clock, Record, Status, TokensFrom
from withstand.testing import BEHAVIOURS, Served, expected
from withstand.testing.records import make_record
from withstand.testing.selftest.cases import CASES, CHAT, COMPLETIONS, Case, chosen
from withstand.testing.selftest.judge import Check, Judged, judged
from withstand.testing.selftest.play import Pair, Played, _stages, play
from withstand.testing.selftest.proof import Proof
from withstand.testing.selftest.show import json_text, last_line, markdown, text
from withstand.testing.truth.schedule import Schedule

MS = 1_000_000
EPOCH_NS = 7_000_000_000
PLAIN = Case("plain", "What is said")
TOLERANCE_MS = 1.0
SCHEDULE = Schedule(ttft_ms=20, itl_ms=5, tokens=6)


def right_pair(number: int = 0, case: Case = PLAIN, **fields: Any) -> Pair:
    """A record that saw every event 10 µs after it was written."""
    record = make_record(number, SCHEDULE, clock=Clock.KERNEL)
    assert record.sent_ns is not None
    event_ns = [EPOCH_NS + at_ns - 10_000 for at_ns in record.chunk_ns]
    served = Served(
        number=number,
        path="/v1/chat/completions",
        behaviour=case.behaviour,
        stream=True,
        streamed=True,
        status=200,
        tokens_planned=6,
        usage_planned=6,
        finish_planned="length",
        connection=0,
        connection_request=0,
        accepted_ns=EPOCH_NS,
        arrival_ns=EPOCH_NS + record.sent_ns,
        complete_ns=EPOCH_NS + record.sent_ns,
        token_ns=event_ns,
        event_ns=event_ns,
        done_ns=event_ns[-1] + 20_000,
        writing_ns_max=15_000,
    )
    served = replace(served, **fields)
    return Pair(record=record, epoch_ns=EPOCH_NS, served=served, right=expected(case.behaviour, served))


def judge(change: Callable[[Record], Record] = lambda record: record, case: Case = PLAIN, **fields: Any) -> Judged:
    """Five answers, each of whose records was changed."""
    pairs = [right_pair(number, case, **fields) for number in range(5)]
    return judged(Played(case, tuple(replace(pair, record=change(pair.record)) for pair in pairs)), TOLERANCE_MS)


def wrong(result: Judged) -> set[str]:
    return {check.what for check in result.checks if not check.ok}


def shifted(record: Record, by_ns: int, *indexes: int) -> Record:
    stamps = [at_ns + by_ns * (i in indexes) for i, at_ns in enumerate(record.chunk_ns)]
    return replace(record, chunk_ns=stamps, end_ns=stamps[-1])


def test_what_is_right_is_found_right() -> None:
    result = judge()
    assert result.ok, wrong(result)
    names = {check.what for check in result.checks}
    assert {"status", "output_tokens", "tokens_from", "output_events", "finish_reason"} <= names
    assert {"ttft_ms", "itl_mean_ms", "itl_p50_ms", "itl_p99_ms", "e2el_ms"} <= names


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda r: replace(r, status=Status.TRUNCATED), {"status"}),
        (lambda r: replace(r, http_status=206), {"http_status"}),
        (lambda r: replace(r, output_tokens=5), {"output_tokens"}),
        (lambda r: replace(r, tokens_from=TokensFrom.CHUNKS), {"tokens_from"}),
        (lambda r: replace(r, finish_reason="stop"), {"finish_reason"}),
        (lambda r: replace(r, chunk_ns=[r.sent_ns, *r.chunk_ns]), {"output_events"}),
        (lambda r: replace(r, sent_ns=r.sent_ns - 3 * MS), {"ttft_ms", "e2el_ms"}),
        (lambda r: shifted(r, 3 * MS, 0), {"ttft_ms"}),
        (lambda r: shifted(r, 2 * MS, 5), {"e2el_ms", "itl_p99_ms"}),
        (lambda r: shifted(r, -MS, 0, 1, 2, 3, 4, 5), {"seen_early_ms"}),
    ],
)
def test_what_is_wrong_is_found(change: Callable[[Record], Record], found: set[str]) -> None:
    assert found <= wrong(judge(change))


def test_one_answer_with_a_wrong_count_is_enough() -> None:
    assert wrong(judge(lambda r: replace(r, output_tokens=5) if r.id == 3 else r)) == {"output_tokens"}


def test_one_answer_in_a_busy_moment_is_not() -> None:
    assert judge(lambda r: shifted(r, 9 * MS, 5) if r.id == 3 else r).ok


def test_a_failure_that_passes_for_a_success_is_found() -> None:
    assert "status" in wrong(judge(case=Case("error_midstream", "")))


def test_an_answer_that_the_server_never_heard_of_is_missed() -> None:
    pairs = [right_pair(number) for number in range(4)]
    lost = Pair(record=make_record(9, SCHEDULE), epoch_ns=EPOCH_NS)
    assert wrong(judged(Played(PLAIN, (*pairs, lost)), TOLERANCE_MS)) == {"answers"}


def test_a_doubt_that_is_missing_is_found() -> None:
    case = Case("error_text_as_content", "")
    assert wrong(judge(case=case)) == {"doubt"}
    assert judge(lambda r: replace(r, text_head="Error: 503 Service Unavailable"), case).ok


def test_joined_events_are_doubted_where_they_were_read_late() -> None:
    """The kernel's stamp is that of all that was written together; it is one event's where more may have come."""
    case = Case("joined:6", "")
    together = judge(lambda r: replace(r, chunk_ns=[r.chunk_ns[-1]] * 6), case)
    assert together.check("doubt") is None, "read in time: all are known"
    late = judge(lambda r: replace(r, chunk_ns=[r.chunk_ns[-1]] * 6, unsure=[0, 1, 2], unsure_since_ns=[0, 0, 0]), case)
    assert late.check("doubt") == Check("doubt", "shared_reads", "shared_reads", ok=True)
    ours = judge(lambda r: replace(r, chunk_ns=[r.chunk_ns[-1]] * 6, clock=Clock.USER), case)
    assert ours.check("doubt") == Check("doubt", "shared_reads", "shared_reads", ok=True)


def test_a_late_read_that_is_not_doubted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("withstand.testing.selftest.judge._doubts", lambda _: set())
    late = judge(lambda r: replace(r, unsure=[2], unsure_since_ns=[0]), Case("joined", ""))
    assert late.check("doubt") == Check("doubt", "shared_reads", None, ok=False)


def test_events_of_one_read_are_claimed_to_be_known_only_at_the_last() -> None:
    """The client looked late, and saw three events at once: two gaps are lost, and none is wrong."""
    result = judge(lambda r: replace(r, chunk_ns=[*r.chunk_ns[:2], *[r.chunk_ns[4]] * 3, r.chunk_ns[5]]))
    assert result.ok, wrong(result)
    assert {(one.gaps, one.known_gaps) for one in result.timings} == {(5, 2)}


def test_the_log_is_allowed_its_own_uncertainty() -> None:
    late = {"writing_ns_max": 4 * MS}
    assert judge(lambda r: shifted(r, 3 * MS, *range(6)), **late).ok
    assert not judge(lambda r: shifted(r, 6 * MS, *range(6)), **late).ok


def test_an_event_whose_writing_was_interrupted_is_not_judged() -> None:
    """The log says when it began to write the third event; it went out 8 ms later, and was seen then."""
    writing = {"writing_ns": [15_000, 15_000, 8 * MS, 15_000, 15_000, 15_000], "writing_ns_max": 8 * MS}
    result = judge(lambda r: shifted(r, 4 * MS, 2), **writing)
    assert result.ok, wrong(result)
    assert {one.known_gaps for one in result.timings} == {3}
    assert wrong(judge(lambda r: shifted(r, 4 * MS, 0), **writing)) >= {"ttft_ms"}, "it excuses no other event"


def test_what_the_record_calls_unsure_is_not_claimed() -> None:
    def late(record: Record) -> Record:
        return replace(shifted(record, 4 * MS, 0), unsure=[0])

    result = judge(late)
    assert result.ok, wrong(result)
    assert result.check("ttft_ms") is None


@pytest.mark.parametrize("busy", [{"late_ns_max": 20 * MS}, {"received_ns": EPOCH_NS + 10 * MS}])
def test_times_of_answers_that_the_machine_held_up_prove_nothing(busy: dict[str, int]) -> None:
    fields = busy | {"complete_ns": EPOCH_NS + 30 * MS} if "received_ns" in busy else busy
    assert judge(lambda r: shifted(r, 9 * MS, *range(6)), **fields).ok is None
    assert judge(lambda r: replace(r, output_tokens=5), **fields).ok is False, "a count is no time"


def test_times_of_a_client_that_waited_for_its_core_prove_nothing() -> None:
    slow = [replace(right_pair(n, late_ns_max=0), crowded=True) for n in range(5)]
    slow = [replace(pair, record=shifted(pair.record, 9 * MS, *range(6))) for pair in slow]
    result = judged(Played(PLAIN, tuple(slow)), TOLERANCE_MS)
    assert result.ok is None
    assert not proof(result).ok
    assert last_line(proof(result, judge())) == "1 of 2 right; 1 not proved, in 1.5 s"


def test_patience_that_ended_proves_something_only_where_nothing_stood_still() -> None:
    def timed_out(record: Record) -> Record:
        return replace(record, status=Status.TIMEOUT)

    assert "status" in wrong(judge(timed_out))
    stalled = judge(timed_out, late_ns_max=3000 * MS)
    assert stalled.ok is None
    assert wrong(judge(lambda r: timed_out(r) if r.id == 3 else r, late_ns_max=3000 * MS)) == {"answers"}
    doubtful = Case("error_text_as_content", "")
    assert judge(lambda r: timed_out(r) if r.id else r, doubtful, late_ns_max=3000 * MS).ok is None, "one is too few"


# What is played.


def test_every_behaviour_is_played() -> None:
    alone = {case.behaviour.partition(":")[0] for case in CASES if "+" not in case.behaviour and case.dialect == CHAT}
    assert alone == set(BEHAVIOURS)
    assert {case.dialect for case in CASES} == {CHAT, COMPLETIONS}
    assert len(set(CASES)) == len(CASES)


def test_only_what_must_time_out_is_waited_for_briefly() -> None:
    stages = _stages(CASES)
    assert {case for stage in stages for case in stage} == set(CASES)
    assert [[case.behaviour for case in stage] for stage in stages if len(stage) == 1] == [["hang"]]


def test_cases_are_chosen_by_behaviour() -> None:
    assert [(case.behaviour, case.dialect) for case in chosen(["plain"])] == [("plain", CHAT), ("plain", COMPLETIONS)]
    assert [case.behaviour for case in chosen(["stall"])] == ["stall:200"]
    assert [case.behaviour for case in chosen(["crlf+gzip"])] == ["crlf+gzip"]
    with pytest.raises(UsageError, match="'nonsense' is unknown"):
        chosen(["nonsense"])


def test_our_client_is_right_in_everything_but_time(tmp_path: Path) -> None:
    """Times depend on what else this machine does; whether they hold is for ``withstand selftest`` to say."""
    results = [judged(played, TOLERANCE_MS) for played in play(CASES, 3, tmp_path)]
    wrongs = {r.case.behaviour: wrong(r) for r in results if not r.ok and not r.only_times_wrong}
    assert not wrongs


# How it is shown.


def proof(*results: Judged) -> Proof:
    return Proof(clock=Clock.KERNEL, tolerance_ms=1.0, answers=5, took_s=1.5, cases=results)


def plain_row(shown: Proof) -> list[str]:
    return next(line for line in text(shown, 110).splitlines() if line.startswith("  plain")).split()


def test_the_table_is_as_wide_as_it_may_be() -> None:
    failing = judge(lambda r: replace(r, output_tokens=5))
    for width in (80, 110):
        lines = text(proof(judge(), failing), width).splitlines()
        rows = [line for line in lines if line.startswith("  plain")]
        assert [row[-1] for row in rows] == ["✓", "✗"]
        assert {len(row) for row in rows} == {width}
        assert lines[-1] == "1 of 2 right, in 1.5 s"
        assert any("output_tokens" in line and "right: 6, ours: 5" in line for line in lines)


def test_what_is_not_known_is_not_shown_as_zero() -> None:
    lines = text(proof(judge(case=Case("hang", ""), status=None)), 80)
    assert "timeout" in lines
    assert "0.00" not in lines


def test_long_times_stay_apart() -> None:
    pairs = [right_pair(number) for number in range(5)]
    slow = [replace(pair, record=replace(pair.record, sent_ns=-1072 * MS)) for pair in pairs]
    row = plain_row(proof(judged(Played(PLAIN, tuple(slow)), TOLERANCE_MS)))
    assert row[-5:-1] == ["6", "1092", "5.00", "5.00"]


def test_a_row_is_one_answer() -> None:
    """Two of five know their gaps: the one's p50 is off most, the other's p99. They are not mixed."""

    def mixed(record: Record) -> Record:
        if record.id < 3:
            return replace(record, chunk_ns=[record.chunk_ns[5]] * 6)
        if record.id == 3:
            return shifted(record, 6 * MS // 10, 5)
        return replace(record, chunk_ns=[at_ns + i * MS // 20 for i, at_ns in enumerate(record.chunk_ns)])

    row = plain_row(proof(judge(mixed)))
    assert row[-3:-1] in (["5.00", "5.58"], ["5.05", "5.05"])


def test_the_foot_is_no_wider_than_the_table() -> None:
    for width in (80, 110):
        assert max(map(len, text(proof(judge()), width).splitlines())) <= width


def test_a_run_whose_gaps_were_not_seen_is_no_proof() -> None:
    blind = judge(lambda r: replace(r, chunk_ns=[r.chunk_ns[5]] * 6))
    assert blind.ok
    assert not proof(blind).ok
    last = text(proof(blind), 110).splitlines()[-1]
    assert last.startswith("1 of 1 right in what could be seen; times not proved on so busy a machine (25 of 25 gaps")
    assert proof(blind, judge(), judge()).ok


def test_programs_get_every_value() -> None:
    document = json.loads(json_text(proof(judge(lambda r: replace(r, finish_reason="stop")))))
    assert (document["schema"], document["right"], document["of"], document["ok"]) == (1, 0, 1, False)
    (case,) = document["cases"]
    assert {"what": "finish_reason", "right": "length", "ours": "stop", "ok": False, "error_ms": None} in case["checks"]


def test_documents_get_a_table() -> None:
    case = Case("error_text_as_content", "")
    lines = markdown(proof(judge(), judge(case=case))).splitlines()
    assert lines[1].startswith("| --- |")
    assert lines[2].endswith("| ✓ |")
    assert f"doubted: `{DoubtKind.ERROR_TEXT}`" in lines[3]
