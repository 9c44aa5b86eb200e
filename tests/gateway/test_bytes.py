"""What goes through is what came: bodies and answers to the byte, headers but for the connection's own."""

import random
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from engines import DONE, END, EVENT, STREAM_HEAD, Behave, Engine, answering, chunk, hanging_up, streaming, stuck, whole
from gateways import CHAT, Gateway, body, get, model, post

ODD = b'{ "stream":false,"x\\u0001":[1.0e5,  null,{"model":"other"}],\n"model" : "m","\xc3\xa9":"\\ud83d\\ude00" }'
ODD_EVENTS = (
    b": ping\n\n",
    b"data:{}\r\n\r\n",
    b"event: x\ndata: 1\ndata: 2\n\n",
    EVENT,
    b'data: {"error":{}}\n\n',
    DONE,
)

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]


def test_a_body_reaches_the_engine_byte_for_byte(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    assert gateway(model(one.url)).ask(ODD).status == 200
    assert one.seen[0].body == ODD


def test_a_chunked_body_arrives_whole_and_with_its_length(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    client = gateway(model(one.url)).client()
    client.send(f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n".encode())
    for i in range(0, len(ODD), 7):
        client.send(chunk(ODD[i : i + 7]))
    assert client.send(END).answer().status == 200
    assert one.seen[0].body == ODD
    assert one.seen[0].header("transfer-encoding") is None


def test_a_large_body_arrives(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    content = body(prompt="x" * 5_000_000)
    client = gateway(model(one.url)).client()
    head, _, _ = post(content, more="expect: 100-continue\r\n").partition(b"\r\n\r\n")
    client.send(head + b"\r\n\r\n").read_until(b"HTTP/1.1 100 Continue\r\n\r\n")
    client.send(content).read_until(b"HTTP/1.1 200 OK")
    assert one.seen[0].body == content
    assert one.seen[0].header("expect") is None


def test_headers_are_kept_but_for_the_connections_own(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering(whole(more=b"X-Odd:  kept \r\nRetry-After: 7\r\n")))
    more = "X-Session-ID: abc\r\ntraceparent: 00-1\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\nTE: trailers\r\n"
    answer = gateway(model(one.url)).ask(body(), more=more + "Authorization: Bearer theirs\r\nX-Request-Id: r-1\r\n")
    seen = one.seen[0]
    assert seen.head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
    assert seen.header("host") == one.name
    assert seen.header("x-session-id") == "abc"
    assert seen.header("traceparent") == "00-1"
    assert seen.header("authorization") == "Bearer theirs"
    assert seen.header("x-request-id") == "r-1"
    assert seen.header("x-mine") is None
    assert seen.header("te") is None
    assert answer.header("x-odd") == "kept "
    assert answer.header("retry-after") == "7"
    assert answer.header("x-request-id") == "r-1"
    assert answer.header("x-withstand-engine") == one.name
    assert "hop;dur=" in (answer.header("server-timing") or "")


def test_each_line_of_connection_names_what_is_the_connections_own(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    more = "Connection: keep-alive\r\nX-Mine: 1\r\nConnection: X-Other, x-mine\r\nX-Other: 2\r\nX-Kept: 3\r\n"
    assert gateway(model(one.url)).ask(body(), more=more).status == 200
    assert [one.seen[0].header(name) for name in ("x-mine", "x-other", "x-kept")] == [None, None, "3"]


def test_nothing_is_said_to_a_client_of_http_1_0_before_its_answer(engine: Engines, gateway: Gateways) -> None:
    client = gateway(model(engine(answering()).url)).client()
    head, _, content = post(body(), more="expect: 100-continue\r\n", version="1.0").partition(b"\r\n\r\n")
    client.send(head + b"\r\n\r\n")
    time.sleep(0.1)
    assert client.send(content).answer().status == 200


def test_an_id_that_could_forge_a_log_line_is_replaced(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    gateway(model(one.url)).ask(body(), more="X-Request-Id: a b\r\n")
    assert (one.seen[0].header("x-request-id") or "").startswith("gw-")


@pytest.mark.parametrize("gap_s", [0.0, 0.01])
def test_a_stream_comes_as_the_engine_framed_it(engine: Engines, gateway: Gateways, gap_s: float) -> None:
    pieces = [chunk(event) for event in ODD_EVENTS] + [chunk(b"data: a" + b"b" * 300_000 + b"\n\n"), END]
    one = engine(streaming(*pieces, gap_s=gap_s))
    client = gateway(model(one.url)).client()
    for _ in range(2):
        answer = client.send(post(body(stream=True))).answer()
        assert answer.raw == b"".join(pieces)
    assert one.connections == 1


def test_an_answer_that_comes_byte_by_byte(engine: Engines, gateway: Gateways) -> None:
    said = STREAM_HEAD + chunk(EVENT) + END
    one = engine(lambda talk, _: talk.say(*(said[i : i + 1] for i in range(len(said)))))
    gw = gateway(model(one.url))
    answer = gw.ask(body(stream=True))
    assert answer.complete
    assert answer.raw == chunk(EVENT) + END
    assert gw.metrics()['first_byte_seconds_count{model="m"}'] == 1


def test_the_first_event_is_not_held_back(engine: Engines, gateway: Gateways) -> None:
    one = engine(stuck(STREAM_HEAD, chunk(EVENT)))
    client = gateway(model(one.url)).client()
    client.send(post(body(stream=True))).read_until(EVENT)


def test_early_hints_are_no_answer(engine: Engines, gateway: Gateways) -> None:
    one = engine(lambda talk, _: talk.say(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", whole(), gap_s=0.05))
    answer = gateway(model(one.url)).ask(body())
    assert answer.status == 200
    assert answer.header("x-withstand-engine") == one.name


def test_an_alias_changes_the_models_name_and_nothing_else(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    gateway(model(one.url, more='aliases = ["gpt"]')).ask(ODD.replace(b'"m"', b'"gpt"').replace(b"other", b"gpt"))
    assert one.seen[0].body == ODD.replace(b"other", b"gpt")


def test_a_client_of_http_1_0_gets_an_answer_without_chunks(engine: Engines, gateway: Gateways) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    one = engine(hanging_up(head, EVENT, DONE))
    answer = gateway(model(one.url)).ask(body(stream=True), version="1.0")
    assert answer.raw == EVENT + DONE
    assert one.seen[0].head.startswith(b"POST /v1/chat/completions HTTP/1.0")


@pytest.mark.parametrize(
    "pieces", [(STREAM_HEAD, chunk(EVENT), chunk(DONE), END), (STREAM_HEAD + chunk(EVENT + DONE) + END,)]
)
def test_a_client_of_http_1_0_gets_none_from_an_engine_that_sends_it_chunks(
    engine: Engines, gateway: Gateways, pieces: tuple[bytes, ...]
) -> None:
    one = engine(lambda talk, _: talk.say(*pieces, gap_s=0.02))
    answer = gateway(model(one.url)).ask(body(stream=True), version="1.0")
    assert answer.raw == EVENT + DONE
    assert answer.header("transfer-encoding") is None
    assert answer.header("connection") == "close"


def test_planes_take_turns_on_one_connection(engine: Engines, gateway: Gateways) -> None:
    client = gateway(model(engine(answering()).url)).client()
    for _ in range(3):
        assert client.send(get("/v1/models")).answer().json["data"][0]["id"] == "m"
        assert client.send(post(body())).answer().json == {"ok": True}
    client.send(get("/health") + post(body()) + get("/v1/models/m") + post(b"{") + post(body(), "/v1/embeddings"))
    assert [client.answer().status for _ in range(5)] == [200, 200, 200, 400, 200]


def test_reads_may_be_cut_anywhere(engine: Engines, gateway: Gateways) -> None:
    one = engine(lambda talk, seen: talk.say(STREAM_HEAD, chunk(seen.body), END))
    gw = gateway(model(one.url))
    chunked = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\nTransfer-Encoding: Chunked\r\n\r\n".encode() + chunk(ODD[:9])
    said = post(ODD) + get("/health") + chunked + chunk(ODD[9:]) + b"0\r\nx-trailer: 1\r\n\r\n" + post(body(n=1))
    dice = random.Random(7)
    for _ in range(30):
        client = gw.client()
        cuts = sorted(dice.sample(range(len(said)), 12))
        for start, end in pairwise([0, *cuts, len(said)]):
            client.send(said[start:end])
            time.sleep(dice.choice((0.0, 0.001)))
        answers = [client.answer() for _ in range(4)]
        assert [answer.status for answer in answers] == [200] * 4
        assert answers[0].raw == answers[2].raw == chunk(ODD) + END
        assert answers[3].raw == chunk(body(n=1)) + END
        client.close()


def test_an_offer_of_http_2_is_passed_over(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"
    client = gateway(model(one.url)).client()
    for _ in range(2):
        assert client.send(post(ODD, more=offer)).answer().status == 200
    assert [seen.body for seen in one.seen] == [ODD, ODD]
    assert one.seen[0].header("upgrade") is None
