"""The right values follow from the log, and from nothing else."""

import json
from collections.abc import Callable
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.metrics.doubts import DoubtKind
from withstand.record import Status, TokensFrom
from withstand.testing import BEHAVIOURS, Served, expected, expected_run

MS = 1_000_000


def served(behaviour: str = "plain", events: list[int] | None = None, **fields: Any) -> Served:
    """An answer whose events went out at these ms after the request, one token each."""
    event_ns = [at_ms * MS for at_ms in ([20, 24, 32, 33] if events is None else events)]
    known = {
        "number": 3,
        "path": "/v1/chat/completions",
        "behaviour": behaviour,
        "stream": True,
        "streamed": True,
        "status": 200,
        "usage_planned": len(event_ns),
        "finish_planned": "length",
        "connection": 0,
        "connection_request": 0,
        "accepted_ns": 0,
        "arrival_ns": 0,
        "complete_ns": 0,
        "token_ns": event_ns,
        "event_ns": event_ns,
        "writing_ns_max": MS // 100,
    }
    return Served(**(known | fields))


def test_a_plain_answer_in_full() -> None:
    right = expected("plain", served())
    assert (right.number, right.status, right.success, right.doubt) == (3, Status.OK, True, None)
    assert (right.output_tokens, right.tokens_from, right.written_tokens, right.output_events) == (
        4,
        TokensFrom.SERVER,
        4,
        4,
    )
    assert (right.ttft_ms, right.e2el_ms, right.finish_reason, right.http_status) == (20, 33, "length", 200)
    assert right.tpot_ms == pytest.approx(13 / 3)
    assert right.itl_ms is not None
    assert (right.itl_ms.n, right.itl_ms.p50_ms) == (3, 4)
    assert right.itl_ms.mean_ms == pytest.approx(13 / 3)
    assert right.slack_ms == pytest.approx(0.01)


@given(st.lists(st.integers(1, 10_000), min_size=2, max_size=50))
def test_percentiles_are_numpys(instants: list[int]) -> None:
    right = expected("plain", served(events=sorted(instants)))
    gaps = [b - a for a, b in pairwise(sorted(instants)) if b > a]
    if not gaps:
        assert right.itl_ms is None
        return
    assert right.itl_ms is not None
    assert right.itl_ms.mean_ms == pytest.approx(fmean(gaps))
    assert (right.itl_ms.p50_ms, right.itl_ms.p99_ms) == pytest.approx(tuple(np.percentile(gaps, [50, 99])))


def test_events_of_one_write_have_no_gap() -> None:
    right = expected("joined:2", served("joined:2", [20, 20, 30, 30]))
    assert right.itl_ms is not None
    assert (right.itl_ms.n, right.itl_ms.mean_ms, right.output_events) == (1, 10, 4)


def test_a_failure_has_no_times_but_what_was_written_is_told() -> None:
    right = expected("error_midstream", served("error_midstream"))
    assert (right.status, right.success, right.written_tokens) == (Status.STREAM_ERROR, False, 4)
    assert [right.ttft_ms, right.itl_ms, right.e2el_ms, right.output_tokens, right.finish_reason] == [None] * 5


def test_one_fault_among_several_behaviours_decides() -> None:
    assert expected("crlf+reset:2", served("crlf+reset:2")).status is Status.TRUNCATED


def test_without_usage_the_events_count() -> None:
    right = expected("no_usage", served("no_usage", usage_planned=None))
    assert (right.output_tokens, right.tokens_from) == (4, TokensFrom.CHUNKS)


def test_one_body_has_no_time_to_first_token() -> None:
    right = expected("no_stream", served("no_stream", [33], streamed=False, usage_planned=4))
    assert (right.ttft_ms, right.itl_ms, right.tpot_ms, right.output_events) == (None, None, None, None)
    assert (right.e2el_ms, right.output_tokens) == (33, 4)


def test_what_the_server_refused_by_itself_has_failed() -> None:
    right = expected("plain", served(events=[], behaviour=None, status=401, streamed=False))
    assert (right.status, right.success, right.http_status) == (Status.HTTP_ERROR, False, 401)


def test_a_run_counts_what_must_what_may_and_what_cannot_be_a_success() -> None:
    log = [served(), served(events=[10, 20]), served("reset"), served("redirect", [])]
    run = expected_run(log)
    assert (run.completed, run.failed, run.either, run.output_tokens) == (2, 1, 1, 6)
    assert run.ttft_ms is not None
    assert run.itl_ms is not None
    assert (run.ttft_ms.n, run.ttft_ms.mean_ms) == (2, 15)
    assert run.itl_ms.n == 4


def test_no_good_answer_has_no_times() -> None:
    run = expected_run([served("hang", [])])
    assert (run.completed, run.failed, run.ttft_ms, run.e2el_ms) == (0, 1, None, None)


def test_errors_in_words_are_a_success_with_a_doubt() -> None:
    right = expected("error_text_as_content", served("error_text_as_content"))
    assert (right.success, right.doubt) == (True, DoubtKind.ERROR_TEXT)


@pytest.mark.parametrize("name", sorted(name for name, b in BEHAVIOURS.items() if b.status is Status.OK))
def test_the_server_keeps_what_it_promises_at_the_end(client: Any, tools: Any, name: str) -> None:
    """The log's plan of usage and finish reason is what stands in the bytes, wherever the answer is a success."""
    heard = client.chat(name)
    (log,) = client.server.truth()
    right = expected(name, log)
    answers = [json.loads(heard.message.body)] if name == "no_stream" else tools.chunks_of(heard.events)
    claims = [answer["usage"]["completion_tokens"] for answer in answers if answer.get("usage")]
    reasons = [choice["finish_reason"] for answer in answers for choice in answer["choices"]]
    assert (claims[-1:] or [None]) == [log.usage_planned]
    assert {reason for reason in reasons if reason} == {right.finish_reason}
    assert log.writing_ns_max > 0


def test_the_server_itself_says_what_is_right(client: Any, wait_for: Callable[..., Any]) -> None:
    client.chat("crlf")
    client.chat("error_midstream")
    told = json.loads(client.post("/truth/right", None).message.body)
    assert told["schema"] == 1
    assert [(a["behaviour"], a["success"]) for a in told["answers"]] == [("crlf", True), ("error_midstream", False)]
    assert (told["run"]["completed"], told["run"]["failed"], told["run"]["output_tokens"]) == (1, 1, 6)
    assert told["answers"][0]["ttft_ms"] >= 4
