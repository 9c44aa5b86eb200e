"""Every behaviour over a real socket: the bytes are what the table claims, and the log never claims them too late."""

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from withstand.testing.truth.faults import FAULTS
from withstand.testing.truth.manners import MANNERS

PLAIN_TEXT = "t0 t1 t2 t3 t4 t5"
OTHER_TEXT = {"tool_calls", "huge_tool_calls", "multibyte", "no_usage_early_stop"}
OTHER_TOKENS = {"no_usage_early_stop": 3}
OTHER_REASONS = {"tool_calls": ["tool_calls"], "huge_tool_calls": ["tool_calls"], "two_choices": ["stop", "stop"]}
CLAIMS = {"no_usage": None, "no_usage_early_stop": None, "usage_inflated": 30}
NOT_STREAMED = {"no_stream"}
GENEROUS_NS = 2_000_000_000
QUICK = {
    "stall": "stall:20",
    "slow_headers": "slow_headers:20",
    "close_idle": "close_idle:5",
    "huge_tool_calls": "huge_tool_calls:300",
}


@pytest.mark.parametrize("also", ["", "+split:0", "+bytewise"])
@pytest.mark.parametrize("name", sorted(set(MANNERS) - NOT_STREAMED))
def test_every_manner_says_the_same_tokens(client: Any, tools: Any, name: str, also: str) -> None:
    heard = client.chat(QUICK.get(name, name) + also)
    message, events = heard.message, heard.events
    assert message.complete
    assert message.status == 200
    assert message.headers["content-type"].startswith("text/event-stream")
    assert events[-1] == "[DONE]"
    if name not in OTHER_TEXT:
        assert heard.text == PLAIN_TEXT
    chunks = tools.chunks_of(events)
    reasons = [c["finish_reason"] for chunk in chunks for c in chunk["choices"] if c["finish_reason"]]
    assert reasons == OTHER_REASONS.get(name, ["stop"])
    counts = [chunk["usage"]["completion_tokens"] for chunk in chunks if "usage" in chunk]
    assert (counts[-1:] or [None])[0] == CLAIMS.get(name, 6)


@pytest.mark.parametrize("name", sorted(set(MANNERS) - NOT_STREAMED))
def test_completions_speak_the_older_dialect(client: Any, tools: Any, name: str) -> None:
    heard = client.complete(QUICK.get(name, name))
    assert heard.message.complete
    chunks = tools.chunks_of(heard.events)
    assert {chunk["object"] for chunk in chunks} == {"text_completion"}
    if name not in OTHER_TEXT:
        assert "".join(choice["text"] for chunk in chunks for choice in chunk["choices"]) == PLAIN_TEXT


@pytest.mark.parametrize("name", sorted(MANNERS))
def test_whoever_asks_for_no_stream_gets_one_body(client: Any, tools: Any, name: str) -> None:
    heard = client.chat(QUICK.get(name, name), stream=False)
    answer = json.loads(heard.message.body)
    assert answer["object"] == "chat.completion"
    if name not in OTHER_TEXT | {"two_choices"}:
        assert tools.text_of(answer) == PLAIN_TEXT
    assert answer.get("usage", {}).get("completion_tokens") == CLAIMS.get(name, 6)
    (served,) = client.server.truth()
    assert (served.tokens, len(served.event_ns), served.stream) == (OTHER_TOKENS.get(name, 6), 1, False)


def first_known_ns(heard: Any, tools: Any) -> list[int]:
    """When each output event could first be known to a client that does not even wait for the blank line."""
    known, raw = [], b""
    for at_ns, piece in heard.pieces:
        raw += piece
        events = tools.parse_events(tools.parse_http(raw, closed=False).body, eager=True)
        known += [at_ns] * (sum(says_something(event, tools) for event in events) - len(known))
    return known


def says_something(event: str, tools: Any) -> bool:
    """Half an event of several lines says nothing yet."""
    try:
        return bool(event != "[DONE]" and tools.text_of(json.loads(event)))
    except json.JSONDecodeError:
        return False


@pytest.mark.parametrize("also", ["", "+split:0", "+bytewise", "+joined:2+bytewise"])
@pytest.mark.parametrize("name", sorted(set(MANNERS) - NOT_STREAMED))
def test_no_client_can_know_an_event_before_the_log_says_so(client: Any, tools: Any, name: str, also: str) -> None:
    heard = client.chat(QUICK.get(name, name) + also)
    (served,) = client.server.truth()
    known_ns = first_known_ns(heard, tools)
    assert served.tokens == OTHER_TOKENS.get(name, 6)
    assert len(known_ns) == len(served.event_ns)
    assert all(0 <= known - told < GENEROUS_NS for known, told in zip(known_ns, served.event_ns, strict=True))


# What is special about each manner.


def outputs(tools: Any, heard: Any) -> list[str]:
    return [tools.text_of(chunk) for chunk in tools.chunks_of(heard.events)]


def test_plain_is_as_vllm(client: Any, tools: Any) -> None:
    heard = client.chat()
    first, *middle, last, usage = tools.chunks_of(heard.events)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert last["choices"][0] == {"index": 0, "delta": {"content": " t5"}, "logprobs": None, "finish_reason": "stop"}
    assert usage["choices"] == []
    assert usage["usage"] == {"prompt_tokens": 3, "total_tokens": 9, "completion_tokens": 6}
    assert len(middle) == 5


def test_usage_comes_only_to_those_who_ask(client: Any, tools: Any) -> None:
    assert not any("usage" in chunk for chunk in tools.chunks_of(client.chat(stream_options={}).events))


def test_usage_can_be_asked_for_in_every_chunk(client: Any, tools: Any) -> None:
    for heard in (
        client.chat("usage_in_every_chunk", stream_options={}),
        client.chat(stream_options={"include_usage": True, "continuous_usage_stats": True}),
    ):
        counts = [chunk["usage"]["completion_tokens"] for chunk in tools.chunks_of(heard.events)]
        assert counts == [0, 1, 2, 3, 4, 5, 6, 6]


def test_role_early_comes_before_the_first_token_is_due(client: Any, tools: Any) -> None:
    heard = client.chat("role_early", "ttft=200")
    (served,) = client.server.truth()
    raw = b"".join(piece for at_ns, piece in heard.pieces if at_ns < served.token_ns[0])
    (chunk,) = tools.chunks_of(tools.parse_events(tools.parse_http(raw, closed=False).body))
    assert chunk["choices"][0]["delta"]["role"] == "assistant"


def test_role_none_and_finish_separate(client: Any, tools: Any) -> None:
    assert outputs(tools, client.chat("role_none"))[0] == "t0"
    chunks = tools.chunks_of(client.chat("finish_separate").events)
    assert [c["choices"][0]["delta"] for c in chunks[-3:-1]] == [{"content": " t5"}, {}]
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"


def test_tokens_per_event(client: Any, tools: Any) -> None:
    heard = client.chat("tokens_per_event:4")
    (served,) = client.server.truth()
    assert [said for said in outputs(tools, heard) if said] == ["t0 t1 t2 t3", " t4 t5"]
    assert (served.tokens, len(served.event_ns)) == (6, 2)


def test_joined_events_share_a_stamp(client: Any) -> None:
    heard = client.chat("joined:4")  # the role, three tokens; three tokens, usage; [DONE]
    (served,) = client.server.truth()
    assert len(set(served.token_ns)) == 2
    assert len(served.event_ns) == 6
    chunks = re.findall(rb"\r\n([0-9a-f]+)\r\ndata", heard.raw)
    assert len(chunks) == 3


def test_bytewise_writes_single_bytes(client: Any) -> None:
    pieces = client.chat("bytewise").pieces
    assert min(len(piece) for _, piece in pieces) <= 8
    assert len(pieces) > 10


def test_reasoning_comes_first(client: Any, tools: Any) -> None:
    for name in ("reasoning", "reasoning_content"):
        chunks = tools.chunks_of(client.chat(f"{name}:2").events)
        deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]][1:]
        assert [next(iter(delta)) for delta in deltas] == [name] * 2 + ["content"] * 4
        assert chunks[-1]["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2}
        message = json.loads(client.chat(name, stream=False).message.body)["choices"][0]["message"]
        assert (message[name], message["content"]) == ("t0 t1 t2", " t3 t4 t5")


def test_tool_calls_are_json_in_pieces_however_large(client: Any, tools: Any) -> None:
    chunks = tools.chunks_of(client.chat("tool_calls:50000").events)
    calls = [call for c in chunks for choice in c["choices"] for call in choice["delta"].get("tool_calls", [])]
    assert calls[0]["function"]["name"] == "look_up"
    assert len(calls) == 6
    assert len(json.loads("".join(call["function"]["arguments"] for call in calls))["query"]) == 300_000
    message = json.loads(client.chat("tool_calls", stream=False).message.body)["choices"][0]["message"]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"])
    assert message["content"] is None


def test_two_choices_take_turns(client: Any, tools: Any) -> None:
    chunks = tools.chunks_of(client.chat("two_choices").events)
    said = [(choice["index"], choice["delta"]["content"]) for c in chunks[1:] for choice in c["choices"]]
    assert [index for index, _ in said] == [0, 1] * 3
    assert "".join(word for _, word in said) == PLAIN_TEXT
    ends = [choice["index"] for c in chunks for choice in c["choices"] if choice["finish_reason"]]
    assert ends == [0, 1]
    choices = json.loads(client.chat("two_choices", stream=False).message.body)["choices"]
    assert [choice["message"]["content"] for choice in choices] == ["t0 t2 t4", " t1 t3 t5"]


def test_logprobs_are_heavy_in_both_dialects(client: Any, tools: Any) -> None:
    *_, chat, _ = tools.chunks_of(client.chat("logprobs").events)
    (entry,) = chat["choices"][0]["logprobs"]["content"]
    assert (entry["token"], len(entry["top_logprobs"])) == (" t5", 20)
    *_, text, _ = tools.chunks_of(client.complete("logprobs:3").events)
    logprobs = text["choices"][0]["logprobs"]
    assert (logprobs["tokens"], len(logprobs["top_logprobs"][0])) == ([" t5"], 3)


def test_a_chunk_without_choices_comes_first(client: Any, tools: Any) -> None:
    first, second, *_ = tools.chunks_of(client.chat("empty_choices").events)
    assert first["choices"] == []
    assert second["choices"][0]["delta"]["role"] == "assistant"


def test_a_wrong_claim_is_wrong_by_the_factor(client: Any, tools: Any) -> None:
    usage = tools.chunks_of(client.chat("usage_inflated:3").events)[-1]["usage"]
    assert (usage["completion_tokens"], usage["total_tokens"] - usage["prompt_tokens"]) == (18, 18)
    assert client.server.truth()[0].tokens == 6


def test_an_early_stop_is_half_of_what_was_asked(client: Any, tools: Any) -> None:
    heard = client.chat("no_usage_early_stop", max_tokens=40)
    assert len(heard.text.split()) == 20
    assert tools.chunks_of(heard.events)[-1]["choices"][0]["finish_reason"] == "stop"


def test_multibyte_cuts_characters(client: Any) -> None:
    heard = client.chat("multibyte")
    assert heard.text == " ".join(f"é漢\u2028🙂{i}" for i in range(6))
    assert "\u2028".encode() in heard.raw
    assert any(piece[0] & 0xC0 == 0x80 for _, piece in heard.pieces)


@pytest.mark.parametrize(
    ("name", "there", "absent"),
    [
        ("crlf", rb"data: \{[^\n]*\}\r\n\r\n\r\n", rb"[^\r]\n"),
        ("more_fields", rb"event: message\nid: 7\nretry: 3000\nmood: good\ndata: \{", rb"!"),
        ("no_space", rb"data:\{", rb"data: "),
        ("multi_line_data", rb'data: \{"id":"[^"]*",\ndata: "object"', rb"data: \{[^\n]*object"),
        ("comments", rb": keep-alive\n\n", rb"!"),
        ("chunk_extensions", rb'\r\n[0-9a-f]+;truth="yes; it is"\r\n', rb"!"),
        ("trailers", rb"\r\n0\r\nX-Truth-Trailer: behind the body\r\n\r\n$", rb"!"),
        ("http10", rb"^HTTP/1.0 200 OK\r\n", rb"(?i)content-length|transfer-encoding|connection:"),
        ("content_length", rb"Content-Length: \d+\r\n", rb"chunked"),
        ("gzip", rb"Content-Encoding: gzip\r\n", rb"data: "),
        ("status_100", rb"^HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n", rb"!"),
    ],
)
def test_the_bytes_are_as_claimed(client: Any, name: str, there: bytes, absent: bytes) -> None:
    raw = client.chat(name).raw
    assert re.search(there, raw)
    assert not re.search(absent, raw)


def test_a_comment_comes_before_the_first_token(client: Any) -> None:
    heard = client.chat("comments", "ttft=200")
    (served,) = client.server.truth()
    early = b"".join(piece for at_ns, piece in heard.pieces if at_ns < served.token_ns[0])
    assert b": keep-alive" in early
    assert b'"t0"' not in early


def test_slow_headers_hold_everything_back(client: Any) -> None:
    client.chat("slow_headers:120")
    (served,) = client.server.truth()
    assert served.first_write_ns - served.complete_ns >= 120_000_000
    assert served.token_ns[0] >= served.first_write_ns


def test_a_stall_is_one_long_gap(client: Any) -> None:
    client.chat("stall:150")
    (served,) = client.server.truth()
    gaps = [b - a for a, b in zip(served.token_ns, served.token_ns[1:], strict=False)]
    assert max(gaps) >= 100_000_000
    assert gaps.index(max(gaps)) == 2


def test_no_stream_is_one_json_body(client: Any, tools: Any) -> None:
    heard = client.chat("no_stream")
    assert heard.message.headers["content-type"] == "application/json"
    assert tools.text_of(json.loads(heard.message.body)) == PLAIN_TEXT


def test_close_after_response_breaks_its_promise(client: Any, tools: Any) -> None:
    with client.connect() as sock:
        heard = client.exchange(sock, tools.body_of(), X_Truth="behaviour=close_after_response")
        assert heard.message.headers["connection"] == "keep-alive"
        assert heard.message.complete
        assert sock.recv(10) == b""


def test_close_idle_waits_for_the_next_request_only_so_long(client: Any, tools: Any) -> None:
    with client.connect() as sock:
        first = client.exchange(sock, tools.body_of(), X_Truth="behaviour=close_idle:300")
        second = client.exchange(sock, tools.body_of(), X_Truth="behaviour=close_idle:300")
        ended_ns = time.monotonic_ns()
        assert first.message.complete
        assert second.message.complete
        assert sock.recv(10) == b""
        assert time.monotonic_ns() - ended_ns >= 150_000_000


# What is wrong with each fault.


def test_every_fault_is_logged_by_its_name(client: Any) -> None:
    for name in FAULTS:
        client.chat(name, patience_s=0.2)
    assert [served.behaviour for served in client.server.truth()] == list(FAULTS)


@pytest.mark.parametrize(
    ("name", "tokens", "done"),
    [
        ("error_before_token", 0, True),
        ("error_midstream", 3, True),
        ("error_midstream:5", 5, True),
        ("error_midstream_no_done", 3, False),
    ],
)
def test_error_events_come_with_http_200(client: Any, tools: Any, name: str, tokens: int, done: bool) -> None:
    heard = client.chat(name)
    assert heard.message.complete
    assert heard.message.status == 200
    events = heard.events
    assert (events[-1] == "[DONE]") == done
    last = tools.chunks_of(events)[-1]
    assert last["error"]["code"] == 500
    assert sum(map(bool, outputs(tools, heard))) == tokens
    assert client.server.truth()[0].tokens == tokens


def test_malformed_json_in_the_middle(client: Any) -> None:
    *_, broken, done = client.chat("malformed:2").events
    assert done == "[DONE]"
    with pytest.raises(json.JSONDecodeError):
        json.loads(broken)


@pytest.mark.parametrize(("name", "text"), [("missing_done", PLAIN_TEXT), ("cut_short", "t0 t1 t2")])
def test_bodies_that_end_without_done(client: Any, name: str, text: str) -> None:
    heard = client.chat(name)
    assert heard.message.complete
    assert "[DONE]" not in heard.events
    assert heard.text == text


@pytest.mark.parametrize(("name", "end"), [("premature_close", "closed"), ("reset", "reset")])
def test_connections_that_end_within_a_chunk(client: Any, name: str, end: str) -> None:
    heard = client.chat(f"{name}:2")
    assert heard.end == end
    assert not heard.message.complete
    assert heard.raw.endswith(b'"content":"') or not heard.raw.endswith(b"\r\n")
    assert heard.text == "t0 t1"
    assert client.server.truth()[0].tokens == 2


def test_a_close_behind_the_last_token_leaves_the_message_open(client: Any, tools: Any) -> None:
    heard = client.chat("close_before_done")
    assert (heard.end, heard.message.complete, heard.text) == ("closed", False, PLAIN_TEXT)
    assert "[DONE]" not in heard.events
    assert not any(choice["finish_reason"] for c in tools.chunks_of(heard.events) for choice in c["choices"])


def test_an_engine_that_gave_up_says_so_in_the_finish_reason(client: Any, tools: Any) -> None:
    chunks = tools.chunks_of(client.chat("finish_abort").events)
    assert [choice["finish_reason"] for c in chunks for choice in c["choices"]][-1] == "abort"


def test_premature_close_of_a_body_with_a_length(client: Any) -> None:
    heard = client.chat("premature_close:0", stream=False)
    assert heard.end == "closed"
    assert heard.message.body
    assert not heard.message.complete


@pytest.mark.parametrize(("name", "end"), [("close_before_answer", "closed"), ("reset_before_answer", "reset")])
def test_connections_that_end_without_a_byte(client: Any, name: str, end: str) -> None:
    heard = client.chat(name)
    assert (heard.end, heard.raw) == (end, b"")
    assert client.server.truth()[0].status is None


def test_hang_says_nothing_until_the_client_leaves(client: Any, wait_for: Callable[..., Any]) -> None:
    heard = client.chat("hang", patience_s=0.2)
    assert (heard.end, heard.raw) == ("timeout", b"")
    wait_for(lambda: client.server.truth()[0].aborted_ns)


def test_empty_answers(client: Any, tools: Any) -> None:
    heard = client.chat("empty_200")
    assert (heard.text, heard.events[-1]) == ("", "[DONE]")
    assert tools.chunks_of(heard.events)[-1]["usage"]["completion_tokens"] == 0
    nothing = client.chat("empty_body").message
    assert (nothing.status, nothing.body, nothing.complete) == (200, b"", True)


def test_an_error_text_is_played_as_if_it_were_an_answer(client: Any) -> None:
    heard = client.chat("error_text_as_content")
    assert heard.text.startswith("Error: upstream connect error, 503")
    assert client.server.truth()[0].tokens == len(heard.text.split()) == 11


@pytest.mark.parametrize(
    ("name", "status", "content_type", "header"),
    [
        ("html_error", 502, "text/html", ""),
        ("html_200", 200, "text/html", ""),
        ("non_json", 200, "application/json", ""),
        ("http_500", 500, "application/json", ""),
        ("http_503", 503, "application/json", ""),
        ("limited", 429, "application/json", "retry-after"),
        ("redirect", 307, "text/plain", "location"),
    ],
)
def test_answers_that_are_no_models(client: Any, name: str, status: int, content_type: str, header: str) -> None:
    message = client.chat(name).message
    assert (message.status, message.headers["content-type"]) == (status, content_type)
    assert not header or message.headers[header]
    if status >= 400 and content_type == "application/json":
        assert json.loads(message.body)["error"]["code"] == status
    if name == "non_json":
        with pytest.raises(json.JSONDecodeError):
            json.loads(message.body)
    (served,) = client.server.truth()
    assert (served.status, served.tokens) == (status, 0)


@pytest.mark.parametrize("path", ["/v1/chat/moved", "/v1/moved"])
def test_a_redirect_leads_to_a_plain_answer(client: Any, tools: Any, path: str) -> None:
    heard = client.post(path, tools.body_of(prompt="x"), X_Truth="behaviour=redirect")
    assert (heard.message.status, heard.text) == (200, PLAIN_TEXT)
