"""Engines that refuse, die, hang or lie: what the client is told, and what is tried again."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from engines import (
    DONE,
    END,
    EVENT,
    PATIENCE_S,
    STREAM_HEAD,
    Behave,
    Engine,
    Seen,
    Talk,
    answering,
    chunk,
    hanging_up,
    silent,
    stuck,
    whole,
)
from gateways import Client, Gateway, body, get, model, post

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]

SHORT = "[timeouts]\nconnect_s = 0.3\nfirst_byte_s = 0.3\nidle_s = 0.3\ntotal_s = 1.5\n"
UNAVAILABLE = whole(b'{"error":{}}', b"503 Service Unavailable", b"retry-after: 9\r\n")


@pytest.fixture
def deaf() -> Iterator[str]:
    """An address that does not take connections: its queue is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as sock:
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(sock.getsockname())
        time.sleep(0.05)
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        for filler in fillers:
            filler.close()


# Nobody to ask.


def test_a_model_that_is_not_there(engine: Engines, gateway: Gateways) -> None:
    answer = gateway(model(engine(answering()).url)).ask(body("other"))
    assert answer.status == 404
    assert answer.error["code"] == "model_not_found"
    assert answer.error["type"] == "invalid_request_error"


def test_a_model_without_engines(gateway: Gateways) -> None:
    answer = gateway("[models.m]\n").ask(body())
    assert answer.status == 503
    assert answer.header("retry-after") is not None


def test_an_engine_that_is_down(gateway: Gateways, nobody: str) -> None:
    client = gateway(model(nobody)).client()
    for _ in range(5):
        answer = client.send(post(body())).answer()
        assert answer.status == 503
        assert answer.header("retry-after") is not None


@pytest.mark.parametrize("policy", ["round_robin", "least_inflight"])
def test_one_down_of_two_costs_no_request(engine: Engines, gateway: Gateways, nobody: str, policy: str) -> None:
    client = gateway(model(engine(answering()).url, nobody, more=f'policy = "{policy}"')).client()
    assert [client.send(post(body())).answer().status for _ in range(40)] == [200] * 40


# An engine that fails before it answers.


def test_a_quiet_connection_that_was_closed_is_tried_once_more(engine: Engines, gateway: Gateways) -> None:
    def once(talk: Talk, _: Seen) -> None:
        if len(one.seen) == 2:
            talk.reset()  # what a keep-alive that has run out looks like from here
        else:
            talk.say(whole())

    one = engine(once)
    gw = gateway(model(one.url))
    client = gw.client()
    assert [client.send(post(body())).answer().status for _ in range(3)] == [200, 200, 200]
    assert one.connections == 2
    assert gw.metrics()["retries_total"] == 1


def test_a_fresh_connection_that_dies_is_not_tried_again(engine: Engines, gateway: Gateways) -> None:
    one = engine(hanging_up())
    answer = gateway(model(one.url)).ask(body())
    assert answer.status == 502
    assert len(one.seen) == 1


def test_an_engine_that_dies_without_a_byte_is_stood_in_for(engine: Engines, gateway: Gateways) -> None:
    bad, good = engine(hanging_up(reset=True)), engine(answering())
    client = gateway(model(bad.url, good.url, more='policy = "round_robin"')).client()
    assert [client.send(post(body())).answer().status for _ in range(6)] == [200] * 6
    assert len(bad.seen) == 3
    assert len(good.seen) == 6


@pytest.mark.parametrize("said", [b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\ncontent-"])
def test_nothing_is_tried_again_after_the_first_byte(engine: Engines, gateway: Gateways, said: bytes) -> None:
    bad, good = engine(hanging_up(said)), engine(answering())
    client = gateway(model(bad.url, good.url, more='policy = "round_robin"')).client()
    assert sorted(client.send(post(body())).answer().status for _ in range(2)) == [200, 502]
    assert len(bad.seen) + len(good.seen) == 2


@pytest.mark.parametrize("said", [b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n", whole() + whole()])
def test_what_is_no_answer_is_a_bad_gateway(engine: Engines, gateway: Gateways, said: bytes) -> None:
    one = engine(answering(said))
    gw = gateway(model(one.url))
    assert gw.ask(body()).status == 502
    gw.until(f'engine_in_flight{{engine="{one.name}"}}', 0)


def test_a_503_of_the_only_engine_is_passed_on(engine: Engines, gateway: Gateways) -> None:
    client = gateway(model(engine(answering(UNAVAILABLE)).url)).client()
    for _ in range(5):
        answer = client.send(post(body())).answer()
        assert (answer.status, answer.header("retry-after"), answer.raw) == (503, "9", b'{"error":{}}')


def test_a_429_is_passed_on_with_its_time_and_is_no_failure(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering(whole(b'{"error":{"code":"x"}}', b"429 Too Many Requests", b"retry-after: 17\r\n")))
    gw = gateway(model(one.url))
    client = gw.client()
    for _ in range(5):
        answer = client.send(post(body())).answer()
        assert (answer.status, answer.header("retry-after")) == (429, "17")
        assert answer.raw == b'{"error":{"code":"x"}}'
    assert not gw.control("GET", "/admin/engines")[1]["m"][0]["failing"]


def test_a_429_is_no_answer_while_another_engine_has_room(engine: Engines, gateway: Gateways) -> None:
    busy, good = engine(answering(whole(b"{}", b"429 Too Many Requests"))), engine(answering())
    client = gateway(model(busy.url, good.url, more='policy = "round_robin"')).client()
    assert [client.send(post(body())).answer().status for _ in range(10)] == [200] * 10
    assert busy.seen


@pytest.mark.parametrize("status", [b"400 Bad Request", b"404 Not Found", b"500 Internal Server Error"])
def test_other_errors_are_the_engines_word(engine: Engines, gateway: Gateways, status: bytes) -> None:
    bad, good = engine(answering(whole(b"{}", status, b"retry-after: 3\r\n"))), engine(answering())
    client = gateway(model(bad.url, good.url, more='policy = "round_robin"')).client()
    answers = [client.send(post(body())).answer() for _ in range(2)]
    assert sorted(a.status for a in answers) == [200, int(status[:3])]
    assert max(answers, key=lambda a: a.status).header("retry-after") == "3"


def test_who_refuses_at_once_is_no_black_hole(engine: Engines, gateway: Gateways) -> None:
    bad, good = engine(answering(UNAVAILABLE)), engine(answering(after_s=0.05))
    gw = gateway(model(bad.url, good.url))
    statuses = []
    for _ in range(5):
        clients = [gw.client().send(post(body())) for _ in range(8)]
        statuses += [client.answer().status for client in clients]
    assert statuses == [200] * 40
    assert len(bad.seen) <= 10


def test_a_failing_engine_is_taken_back_when_it_works_again(engine: Engines, gateway: Gateways) -> None:
    one, good = engine(answering(UNAVAILABLE)), engine(answering())
    client = gateway(model(one.url, good.url, more='policy = "round_robin"\nwarm_up_s = 0')).client()
    for _ in range(10):
        client.send(post(body())).answer()
    failed = len(one.seen)
    one.behave = answering()
    end_s = time.monotonic() + 9
    while len(one.seen) < failed + 3 and time.monotonic() < end_s:
        assert client.send(post(body())).answer().status == 200
        time.sleep(0.1)
    assert failed == 3
    assert len(one.seen) >= failed + 3


# An engine that fails in the midst of its answer.


def said_of(client: Client) -> tuple[bytes, bool]:
    answer = client.send(post(body(stream=True))).answer()
    assert answer.status == 200
    assert client.at_end()
    return answer.raw, answer.complete


@pytest.mark.parametrize("reset", [False, True])
def test_death_between_events_is_told_in_one(engine: Engines, gateway: Gateways, reset: bool) -> None:
    gw = gateway(model(engine(hanging_up(STREAM_HEAD, chunk(EVENT), reset=reset)).url))
    raw, complete = said_of(gw.client())
    assert complete
    assert raw.startswith(chunk(EVENT))
    assert b'data: {"error":' in raw
    assert DONE not in raw
    assert b"finish_reason" not in raw


def test_death_before_the_first_event_is_told_in_one(engine: Engines, gateway: Gateways) -> None:
    raw, complete = said_of(gateway(model(engine(hanging_up(STREAM_HEAD)).url)).client())
    assert complete
    assert raw.count(b"data: ") == 1
    assert b'"error"' in raw


@pytest.mark.parametrize("cut", [EVENT[:-1], EVENT[:9]])
def test_death_within_an_event_is_an_answer_without_an_end(engine: Engines, gateway: Gateways, cut: bytes) -> None:
    raw, complete = said_of(gateway(model(engine(hanging_up(STREAM_HEAD, chunk(EVENT), chunk(cut))).url)).client())
    assert not complete
    assert raw == chunk(EVENT) + chunk(cut)


def test_death_within_a_chunk_is_an_answer_without_an_end(engine: Engines, gateway: Gateways) -> None:
    raw, complete = said_of(gateway(model(engine(hanging_up(STREAM_HEAD, b"ff\r\ndata: a\n\n")).url)).client())
    assert not complete
    assert raw == b"ff\r\ndata: a\n\n"


def test_a_whole_answer_that_is_cut_has_no_end(engine: Engines, gateway: Gateways) -> None:
    client = gateway(model(engine(hanging_up(whole(b"x" * 100)[:-50])).url)).client()
    answer = client.send(post(body())).answer()
    assert not answer.complete
    assert client.at_end()


def test_an_answer_that_ends_with_its_connection_is_cut_by_a_reset(engine: Engines, gateway: Gateways) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
    for reset in (False, True):
        client = gateway(model(engine(hanging_up(head, b"{}", reset=reset)).url)).client()
        client.send(post(body(), version="1.0")).read_until(b"{}")
        if reset:
            with pytest.raises(ConnectionResetError):
                client.sock.recv(1)
        else:
            assert client.sock.recv(1) == b""


def test_an_anthropic_client_is_told_in_its_own_form(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(model(engine(hanging_up(STREAM_HEAD, chunk(EVENT))).url))
    raw = gw.ask(body(stream=True), "/v1/messages").raw
    assert b'event: error\ndata: {"type":"error","error":{"type":"api_error"' in raw
    unknown = gw.ask(body("other"), "/v1/messages").json
    assert (unknown["type"], unknown["error"]["type"]) == ("error", "not_found_error")


@pytest.mark.parametrize(
    ("head", "last"),
    [
        (STREAM_HEAD + chunk(EVENT), END),
        (STREAM_HEAD + chunk(EVENT), b"0\r\nx-trailer: 1\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 2\r\n\r\n1", b"2"),
    ],
)
@pytest.mark.parametrize("gap_s", [0.0, 0.05])
def test_what_follows_an_answer_reaches_nobody(
    engine: Engines, gateway: Gateways, head: bytes, last: bytes, gap_s: float
) -> None:
    """Whoever has asked twice would take it for the second answer."""
    one = engine(lambda talk, _: talk.say(head, last + whole(b"surplus"), gap_s=gap_s))
    client = gateway(model(one.url)).client()
    client.send(2 * post(body(stream=True)))
    said = client.read_to_end()
    assert said.startswith(b"HTTP/1.1 ")
    assert b"surplus" not in said


class Early(Engine):
    """It says no to a large request by its head, and reads no more of it."""

    def _talk(self, talk: Talk) -> None:
        with contextlib.suppress(OSError), talk.sock:
            if b"large" in talk.sock.recv(1 << 16):
                talk.say(whole(status=b"413 Content Too Large"))
                time.sleep(PATIENCE_S)
            talk.say(whole())


def test_a_connection_whose_request_was_not_read_whole_is_for_nobody_else(gateway: Gateways) -> None:
    one = Early(silent)
    client = gateway("[timeouts]\nfirst_byte_s = 2\n" + model(one.url)).client()
    assert client.send(post(body(large="y" * (30 << 20)))).answer().status == 413
    assert client.send(post(body())).answer().status == 200
    one.close()


# An engine that is late.


def in_time(gw: Gateway, content: bytes, at_least_s: float) -> tuple[int, bytes]:
    began_s = time.monotonic()
    answer = gw.ask(content)
    took_s = time.monotonic() - began_s
    assert at_least_s * 0.9 <= took_s < at_least_s + 5
    return answer.status, answer.raw


def test_no_connection_in_time(gateway: Gateways, deaf: str) -> None:
    assert in_time(gateway(SHORT + model(deaf)), body(), 0.3)[0] == 504


def test_no_connection_in_time_but_another_engine(engine: Engines, gateway: Gateways, deaf: str) -> None:
    gw = gateway(SHORT + model(deaf, engine(answering()).url, more='policy = "round_robin"'))
    assert [gw.ask(body()).status for _ in range(2)] == [200, 200]


@pytest.mark.parametrize("stream", [False, True])
def test_no_first_byte_in_time_is_not_asked_for_again(engine: Engines, gateway: Gateways, stream: bool) -> None:
    one, other = engine(silent), engine(silent)
    status, _ = in_time(gateway(SHORT + model(one.url, other.url)), body(stream=stream), 0.3)
    assert status == 504
    seen = one.seen + other.seen
    assert len(seen) == 1
    assert seen[0].left.wait(5)


def test_a_stream_that_stops(engine: Engines, gateway: Gateways) -> None:
    one = engine(stuck(STREAM_HEAD, chunk(EVENT)))
    status, raw = in_time(gateway(SHORT + model(one.url)), body(stream=True), 0.3)
    assert status == 200
    assert b"engine_timeout" in raw
    assert DONE not in raw
    assert one.seen[0].left.wait(5)


def test_a_stream_that_never_ends(engine: Engines, gateway: Gateways) -> None:
    one = engine(lambda talk, _: talk.say(STREAM_HEAD, *[chunk(EVENT)] * 100, gap_s=0.1))
    status, raw = in_time(gateway(SHORT + model(one.url)), body(stream=True), 1.5)
    assert status == 200
    assert b"engine_timeout" in raw


def test_a_route_has_timeouts_of_its_own(engine: Engines, gateway: Gateways) -> None:
    gw = gateway('[routes."/v1/embeddings".timeouts]\nfirst_byte_s = 0.2\n' + model(engine(silent).url))
    assert gw.ask(body(), "/v1/embeddings").status == 504


def test_a_client_that_leaves_while_a_handshake_fails_leaves_no_word_behind(gateway: Gateways) -> None:
    """That the gateway says nothing is seen at its end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        gw = gateway(model(f"https://127.0.0.1:{listening.getsockname()[1]}"))
        for i in range(20):
            client = gw.client().send(post(body()))
            one, _ = listening.accept()
            client.sock.close()
            if i % 2:
                one.sendall(b"HTTP/1.1 400 no TLS\r\n\r\n")
            one.close()
        assert gw.client().send(get("/health")).answer().status == 200
