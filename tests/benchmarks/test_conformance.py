"""The judge of other clients: generous with times, exact with counts, blind to what a client does not say."""

from typing import Any

import pytest
from benchmarks.conformance.cell import Cell
from benchmarks.conformance.judge import Right, findings, right_of
from benchmarks.conformance.table import BEGIN, END, put_into, table
from benchmarks.conformance.trials import Trial, trials
from benchmarks.peers.client import Said, Spread
from benchmarks.peers.clients import chosen
from benchmarks.peers.run import Outcome

from withstand.testing import BEHAVIOURS, Served

MS = 1_000_000
RIGHT = Right(completed=(5,), failed=(0,), output_tokens=(80,), ttft_ms=(50,), itl_mean_ms=(80, 20), e2el_ms=(350,))


def _served(behaviour: str = "plain", *, gap_ms: int = 20, per_event: int = 1, **more: Any) -> Served:
    """An answer of eight tokens, 50 ms after the request."""
    events = [(50 + gap_ms * i) * MS for i in range(8 // per_event)]
    fields: dict[str, Any] = {
        "number": 0,
        "path": "/v1/chat/completions",
        "behaviour": behaviour,
        "stream": True,
        "streamed": True,
        "connection": 0,
        "connection_request": 0,
        "accepted_ns": 0,
        "arrival_ns": 0,
        "complete_ns": 0,
        "event_ns": events,
        "token_ns": [at_ns for at_ns in events for _ in range(per_event)],
        "tokens_planned": 8,
        "usage_planned": 8,
        "done_ns": events[-1],
    }
    return Served(**fields | more)


def test_a_client_that_says_the_truth_is_right() -> None:
    right = right_of([_served()] * 5, 5)
    said = Said(completed=5, failed=0, output_tokens=40, ttft_ms=Spread(51, 51, 55), itl_ms=Spread(20.1, 20, 21))
    assert findings(said, right) == []


def test_what_is_not_said_is_not_wrong() -> None:
    assert findings(Said(), RIGHT) == []


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        (Said(completed=4), "completed 4 (5)"),
        (Said(failed=1), "failed 1 (0)"),
        (Said(output_tokens=79), "tokens 79 (80)"),
        (Said(ttft_ms=Spread(p50=1)), "TTFT 1 (50)"),
        (Said(itl_ms=Spread(mean=40)), "ITL 40 (80 or 20)"),
        (Said(tpot_ms=Spread(mean=0)), "TPOT 0 (none)"),
    ],
)
def test_each_wrong_number_is_named_with_the_right_one(said: Said, wrong: str) -> None:
    assert [str(finding) for finding in findings(said, RIGHT)] == [wrong]


def test_times_may_be_off_by_a_fifth_and_small_ones_by_some_ms() -> None:
    said = Said(ttft_ms=Spread(p50=59), itl_ms=Spread(mean=24.5), e2el_ms=Spread(p50=290))
    assert findings(said, RIGHT) == []
    assert findings(Said(ttft_ms=Spread(p50=61)), RIGHT)


def test_failures_count_as_failures_and_leave_no_times() -> None:
    right = right_of([_served(), _served("error_midstream", gap_ms=500)], 2)
    assert (right.completed, right.failed, right.output_tokens) == ((1,), (1,), (8,))
    assert right.e2el_ms == (190,)


def test_an_answer_that_may_be_taken_either_way_is_right_either_way() -> None:
    right = right_of([_served(), _served("redirect", streamed=False, token_ns=[], event_ns=[])], 2)
    assert list(right.completed) == [1, 2]
    assert list(right.failed) == [1, 0]


def test_an_answer_that_the_client_broke_off_was_one_to_complete() -> None:
    log = [_served(), _served(done_ns=None, aborted_ns=99 * MS)]
    assert right_of(log, 2).completed == (2,)


def test_of_what_is_open_at_its_end_a_client_without_a_count_may_count_any() -> None:
    right = right_of([_served(), _served("malformed"), _served(done_ns=None, aborted_ns=99 * MS)], None)
    assert list(right.completed) == [1, 2]
    assert list(right.failed) == [1]
    assert set(right.output_tokens) == {8, 16}


def test_gaps_by_event_and_by_token_are_both_right() -> None:
    right = right_of([_served(gap_ms=80, per_event=4)], 1)
    assert {round(value) for value in right.itl_mean_ms} == {80, 11, 20}
    assert {round(value) for value in right.tpot_ms} == {11, 20}


def test_a_count_may_be_the_claim_or_what_was_written() -> None:
    right = right_of([_served("usage_inflated", usage_planned=36)], 1)
    assert set(right.output_tokens) == {8, 36}
    assert {round(value) for value in right.tpot_ms} == {20, 4}


def test_a_tail_is_asked_for_only_where_there_is_one() -> None:
    log = [_served()]
    assert right_of(log, 1).itl_p99_ms == ()
    assert right_of(log, 1, tail=True).itl_p99_ms == pytest.approx((20, 20))


def test_an_answer_that_was_not_streamed_has_no_first_token() -> None:
    right = right_of([_served("no_stream", streamed=False)], 1)
    assert right.ttft_ms == right.itl_mean_ms == right.tpot_ms == ()
    assert right.e2el_ms


def test_every_behaviour_is_a_trial_and_wrong_answers_come_among_right_ones() -> None:
    named = {trial.name: trial for trial in trials()}
    assert set(BEHAVIOURS) <= set(named)
    assert named["crlf"].behaviour == "crlf"
    assert named["malformed"].behaviour == {"plain": 0.5, "malformed": 0.5}


def _cell(client: str, said: Said | None, exit_code: int | None = 0) -> Cell:
    found = () if said is None else tuple(findings(said, RIGHT))
    outcome = Outcome(exit_code=exit_code, said=said)
    return Cell(client=client, version="1", trial="plain", outcome=outcome, right=RIGHT, findings=found)


def test_the_table_shows_what_came_of_each_cell() -> None:
    clients = chosen(["withstand", "vllm", "sglang", "aiperf", "genai-bench"])
    plain: Trial = trials()[0]
    time = Spread(50, 50, 50)
    said = [Said(ttft_ms=time), Said(ttft_ms=Spread(p50=1)), Said(completed=1, output_tokens=9), None, None]
    codes = [0, 0, 0, 1, None]
    made = zip(clients, said, codes, strict=True)
    text = table([plain], clients, {("plain", c.name): _cell(c.name, s, code) for c, s, code in made})
    lines = text.splitlines()
    assert lines[2] == "| `plain` | ✓ | ✗ TTFT 1 (50) | ✗ completed 1 (5) | crashes | hangs |"
    assert lines[3].startswith("| **right** | **1 of 1** | **0 of 1** |")


def test_the_table_takes_its_place_in_a_document_and_only_that() -> None:
    document = f"# Title\n\n{BEGIN}\n| old |\n{END}\n\nAfterwards."
    written = put_into(document, "| new |")
    assert written == f"# Title\n\n{BEGIN}\n\n| new |\n\n{END}\n\nAfterwards."
    assert put_into(written, "| new |") == written
    with pytest.raises(SystemExit, match="between them"):
        put_into("# Title", "| new |")
