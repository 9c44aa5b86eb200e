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
from withstand.testing.selftest.judge import Judged, judged
from withstand.testing.selftest.play import Pair, Played, play
from withstand.testing.selftest.proof import Proof
from withstand.testing.selftest.show import json_text, markdown, text
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
        (lambda r: replace(r, tokens_from=TokensFrom.REQUESTED), {"tokens_from"}),
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


def test_events_of_one_read_are_claimed_to_be_known_only_at_the_last() -> None:
    """The client looked late, and saw three events at once: two gaps are lost, and none is wrong."""
    result = judge(lambda r: replace(r, chunk_ns=[*r.chunk_ns[:2], *[r.chunk_ns[4]] * 3, r.chunk_ns[5]]))
    assert result.ok, wrong(result)
    assert {(one.gaps, one.known_gaps) for one in result.timings} == {(5, 2)}


def test_the_log_is_allowed_its_own_uncertainty() -> None:
    late = {"writing_ns_max": 4 * MS}
    assert judge(lambda r: shifted(r, 3 * MS, *range(6)), **late).ok
    assert not judge(lambda r: shifted(r, 6 * MS, *range(6)), **late).ok


# What is played.


def test_every_behaviour_is_played() -> None:
    alone = {case.behaviour.partition(":")[0] for case in CASES if "+" not in case.behaviour and case.dialect == CHAT}
    assert alone == set(BEHAVIOURS)
    assert {case.dialect for case in CASES} == {CHAT, COMPLETIONS}
    assert len(set(CASES)) == len(CASES)


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


def test_a_run_whose_gaps_were_not_seen_is_no_proof() -> None:
    blind = judge(lambda r: replace(r, chunk_ns=[r.chunk_ns[5]] * 6))
    assert blind.ok
    assert not proof(blind).ok
    assert "too busy" in text(proof(blind), 80)
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
