"""Where an answer cannot go on as the engine framed it: ends that the client could not tell, and comments before it."""

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines import (
    DONE,
    END,
    EVENT,
    STREAM_HEAD,
    Behave,
    Engine,
    Seen,
    Talk,
    answering,
    chunk,
    hanging_up,
    silent,
    whole,
)
from gateways import Client, Gateway, body, model, post
from withstand.gateway.chunks import Unframing, joined

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]

OPEN_HEAD = b"HTTP/1.%d 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
COMMENT = b": the engine has not begun yet\n\n"
COMMENTS = "keep_alive_comment_s = 0.05\n"
JSON_ERROR = b'{"error": {"message": "too long",\n "code": 7}}'


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.integers(0, 400))
def test_chunks_are_joined_as_far_as_they_go(parts: list[bytes], cut: int) -> None:
    raw = b"".join(map(chunk, parts)) + END
    assert joined(raw) == b"".join(parts)
    assert b"".join(parts).startswith(joined(raw[:cut]))


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.lists(st.integers(0, 400), max_size=20))
def test_chunks_come_off_wherever_they_are_cut(parts: list[bytes], cuts: list[int]) -> None:
    raw = b"".join(b"%x;x=1\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\nx-trailer: 1\r\n\r\n"
    places = [0, *sorted(cuts), len(raw)]
    pieces = [raw[start:end] for start, end in itertools.pairwise(places)]
    assert b"".join(map(Unframing().body_in, pieces)) == b"".join(parts)


@given(st.lists(st.binary(max_size=9), max_size=9))
def test_what_is_no_chunks_has_an_end(pieces: list[bytes]) -> None:
    body_in = Unframing().body_in
    assert sum(len(body_in(piece)) for piece in pieces) <= sum(map(len, pieces))


# The engine's connection is not the client's.


@pytest.mark.parametrize("minor", [0, 1])
def test_an_answer_that_ends_with_its_connection_does_not_end_the_clients(
    engine: Engines, gateway: Gateways, minor: int
) -> None:
    client = gateway(model(engine(hanging_up(OPEN_HEAD % minor, EVENT, DONE)).url)).client()
    for _ in range(2):
        answer = client.send(post(body(stream=True))).answer()
        assert answer.head.startswith(b"HTTP/1.1 200")
        assert answer.header("connection") is None
        assert joined(answer.raw) == EVENT + DONE
        assert answer.complete


def test_a_connection_that_the_engine_closes_is_not_the_clients(engine: Engines, gateway: Gateways) -> None:
    said = whole(more=b"Connection: close\r\nKeep-Alive: timeout=5\r\n")
    one = engine(hanging_up(said))
    client = gateway(model(one.url)).client()
    for _ in range(3):
        answer = client.send(post(body())).answer()
        assert (answer.status, answer.json) == (200, {"ok": True})
        assert answer.header("connection") is answer.header("keep-alive") is None
    assert one.connections == 3


def test_an_answer_without_a_body_leaves_the_connection_open(engine: Engines, gateway: Gateways) -> None:
    client = gateway(model(engine(answering(b"HTTP/1.1 204 No Content\r\n\r\n")).url)).client()
    for _ in range(2):
        client.send(post(body())).read_until(b"\r\n\r\n")
        assert client._rest.startswith(b"HTTP/1.1 204")
        assert b"chunked" not in client._rest
        client._rest = b""


def test_a_stream_that_is_reset_has_an_error_and_an_end(engine: Engines, gateway: Gateways) -> None:
    client = gateway(model(engine(hanging_up(OPEN_HEAD % 1, EVENT, reset=True)).url)).client()
    answer = client.send(post(body(stream=True))).answer()
    assert answer.complete
    assert b'data: {"error":' in joined(answer.raw)
    assert DONE not in answer.raw


def test_another_answer_that_is_reset_has_no_end(engine: Engines, gateway: Gateways) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
    client = gateway(model(engine(hanging_up(head, b"{}", reset=True)).url)).client()
    answer = client.send(post(body())).answer()
    assert (answer.raw, answer.complete) == (chunk(b"{}"), False)


# Comments.


def after_a_comment(client: Client, said: list[bool]) -> tuple[bytes, bool]:
    """What follows the comments, and whether it has an end."""
    client.send(post(body(stream=True))).read_until(COMMENT)
    said.append(True)
    answer = client.answer()
    assert (answer.status, answer.header("content-type")) == (200, "text/event-stream; charset=utf-8")
    assert answer.header("x-request-id") is not None
    raw = answer.raw
    while raw.startswith(chunk(COMMENT)):
        raw = raw.removeprefix(chunk(COMMENT))
    return raw, answer.complete


def told(talk: Talk, seen: Seen, said: list[bool], *pieces: bytes) -> None:
    """Answer when a comment has come, and hang up where that is the end."""
    while not said and not seen.left.wait(0.002):
        pass
    talk.say(*pieces)
    if b"onnection: close" in pieces[0]:
        talk.sock.shutdown(2)


STREAM = chunk(EVENT) + chunk(DONE) + END


GOES_ON = (
    ((STREAM_HEAD + STREAM,), STREAM),
    ((STREAM_HEAD, chunk(EVENT), chunk(DONE) + END), STREAM),
    ((OPEN_HEAD % 1 + EVENT + DONE,), chunk(EVENT + DONE) + END),
    (
        (b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 4\r\n\r\n:a\n\n",),
        chunk(b":a\n\n") + END,
    ),
)
ERRORS = (
    whole(JSON_ERROR, b"400 Bad Request"),
    b"HTTP/1.1 429 -\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(JSON_ERROR[:9]) + chunk(JSON_ERROR[9:]) + END,
    b"HTTP/1.1 500 -\r\nConnection: close\r\n\r\n" + JSON_ERROR,
)


def test_an_engines_stream_goes_on_behind_comments(engine: Engines, gateway: Gateways) -> None:
    one = engine(silent)
    client = gateway(COMMENTS + model(one.url)).client()
    for pieces, follows in GOES_ON:
        said: list[bool] = []
        one.behave = lambda talk, seen, said=said, pieces=pieces: told(talk, seen, said, *pieces)  # type: ignore[misc]
        assert after_a_comment(client, said) == (follows, True)


def test_an_engines_error_behind_comments_is_an_event(engine: Engines, gateway: Gateways) -> None:
    one = engine(silent)
    client = gateway(COMMENTS + model(one.url)).client()
    for answer in ERRORS:
        said: list[bool] = []
        one.behave = lambda talk, seen, said=said, answer=answer: told(talk, seen, said, answer)  # type: ignore[misc]
        raw, complete = after_a_comment(client, said)
        assert complete
        assert joined(raw) == b'data: {"error":{"message":"too long","code":7}}\n\n'


def test_what_is_no_stream_behind_comments_is_an_error(engine: Engines, gateway: Gateways) -> None:
    said: list[bool] = []
    gw = gateway(COMMENTS + model(engine(lambda talk, seen: told(talk, seen, said, whole())).url))
    raw, complete = after_a_comment(gw.client(), said)
    assert complete
    assert b"The engine answered with status 200 and no stream." in raw


@pytest.mark.parametrize("answer", [b"", whole(b"{}", b"503 Service Unavailable"), STREAM_HEAD])
def test_behind_comments_another_engine_may_still_be_asked(engine: Engines, gateway: Gateways, answer: bytes) -> None:
    said: list[bool] = []

    def fail(talk: Talk, seen: Seen) -> None:
        told(talk, seen, said, answer)
        if not answer.endswith(b"{}"):
            talk.reset()

    bad, good = engine(fail), engine(answering(STREAM_HEAD + STREAM))
    gw = gateway(COMMENTS + model(bad.url, good.url, more='policy = "round_robin"'))
    raw, complete = after_a_comment(gw.client(), said)
    assert (raw, complete) == (STREAM, True)
    assert gw.metrics()["failovers_total"] == 1


def test_an_engine_that_dies_between_its_head_and_its_first_event_is_stood_in_for(
    engine: Engines, gateway: Gateways
) -> None:
    bad, good = engine(hanging_up(STREAM_HEAD, reset=True)), engine(answering(STREAM_HEAD + STREAM))
    client = gateway(model(bad.url, good.url, more='policy = "round_robin"')).client()
    answer = client.send(post(body(stream=True))).answer()
    assert (answer.raw, answer.complete) == (STREAM, True)
    assert answer.header("x-withstand-engine") == bad.name


def test_comments_come_between_an_engines_head_and_its_first_event(engine: Engines, gateway: Gateways) -> None:
    said: list[bool] = []

    def behave(talk: Talk, seen: Seen) -> None:
        talk.say(STREAM_HEAD)
        told(talk, seen, said, STREAM)

    gw = gateway(COMMENTS + model(engine(behave).url))
    client = gw.client().send(post(body(stream=True)))
    client.read_until(COMMENT)
    said.append(True)
    answer = client.answer()
    assert answer.header("x-withstand-engine") is not None
    assert answer.raw.endswith(STREAM)
    assert set(answer.raw.removesuffix(STREAM).split(chunk(COMMENT))) == {b""}


@pytest.mark.parametrize(("path", "form"), [("/v1/chat/completions", b"data: {"), ("/v1/messages", b"event: error\n")])
def test_who_has_had_comments_is_refused_in_an_event(
    engine: Engines, gateway: Gateways, path: str, form: bytes
) -> None:
    gw = gateway(COMMENTS + "[timeouts]\nfirst_byte_s = 0.4\n" + model(engine(silent).url))
    answer = gw.ask(body(stream=True), path)
    assert (answer.status, answer.complete) == (200, True)
    assert COMMENT in joined(answer.raw)
    assert b"\n\n" + form in joined(answer.raw)
    assert DONE not in answer.raw


def test_comments_come_in_the_queue_too(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(COMMENTS + model(engine(silent).url, more="max_in_flight = 1\nqueue = {requests = 1}"))
    gw.client().send(post(body()))
    gw.until("requests_in_flight", 1)
    second = gw.client().send(post(body(stream=True)))
    second.read_until(COMMENT)
    second.close()
    gw.until('queued{model="m"}', 0)


def test_nobody_else_gets_comments(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(COMMENTS + "[timeouts]\nfirst_byte_s = 0.3\n" + model(engine(silent).url))
    assert gw.ask(body()).status == 504
    assert gw.ask(body(stream=True), version="1.0").status == 504
