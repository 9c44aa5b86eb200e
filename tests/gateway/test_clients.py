"""Clients that leave, do not read, send too much, or speak no HTTP."""

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engines import (
    END,
    EVENT,
    STREAM_HEAD,
    Behave,
    Engine,
    Seen,
    Talk,
    answering,
    chunk,
    silent,
    streaming,
    stuck,
    whole,
)
from gateways import CHAT, Gateway, body, get, model, post

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]
LEFT_WITHIN_S = 2.0
"""Of a machine that does other things too; it is a millisecond where it does not."""


def wait_for(holds: Callable[[], object], patience_s: float = 10.0) -> None:
    end_s = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.005)


# Leaving.


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_before_the_answer_stops_the_engine(
    engine: Engines, gateway: Gateways, stream: bool
) -> None:
    one = engine(silent)
    gw = gateway(model(one.url))
    client = gw.client().send(post(body(stream=stream)))
    wait_for(lambda: one.seen)
    client.close()
    assert one.seen[0].left.wait(LEFT_WITHIN_S)
    gw.until(f'engine_in_flight{{engine="{one.name}"}}', 0)
    gw.until("requests_in_flight", 0)
    assert gw.metrics()[f'requests_total{{route="{CHAT}",model="m",status="0",outcome="client_left"}}'] == 1


@pytest.mark.parametrize(
    "pieces", [(STREAM_HEAD, chunk(EVENT)), (whole(b"{ } ")[:-2],), (b"HTTP/1.1 200 OK\r\n\r\n{ ",)]
)
def test_a_client_that_leaves_in_mid_answer_stops_the_engine(
    engine: Engines, gateway: Gateways, pieces: tuple[bytes, ...]
) -> None:
    one = engine(stuck(*pieces))
    gw = gateway(model(one.url))
    client = gw.client().send(post(body(stream=pieces[0] is STREAM_HEAD)))
    client.read_until(pieces[-1][-2:])
    client.close()
    assert one.seen[0].left.wait(LEFT_WITHIN_S)
    gw.until(f'engine_in_flight{{engine="{one.name}"}}', 0)


def test_a_client_that_leaves_while_the_engine_is_dialled(gateway: Gateways) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
        gw = gateway(model(f"http://127.0.0.1:{deaf.getsockname()[1]}"))
        client = gw.client().send(post(body()))
        gw.until("requests_in_flight", 1)
        client.close()
        gw.until("requests_in_flight", 0)
        for filler in fillers:
            filler.close()


def test_a_client_that_leaves_is_no_failure_of_the_engine(engine: Engines, gateway: Gateways) -> None:
    one = engine(silent)
    gw = gateway(model(one.url))
    for i in range(5):
        client = gw.client().send(post(body()))
        wait_for(lambda i=i: len(one.seen) == i + 1)
        client.close()
    gw.until("requests_in_flight", 0)
    assert gw.control("GET", "/ready")[0] == 200


def test_hundreds_that_leave_leave_nothing_behind(engine: Engines, gateway: Gateways) -> None:
    one = engine(stuck(STREAM_HEAD, chunk(EVENT)))
    gw = gateway(model(one.url))
    descriptors = Path(f"/proc/{gw.process.pid}/fd")
    before = len(list(descriptors.iterdir()))
    for _ in range(10):
        clients = [gw.client().send(post(body(stream=True))) for _ in range(30)]
        for client in clients:
            client.read_until(EVENT)
            client.close()
    gw.until("requests_in_flight", 0)
    gw.until(f'engine_in_flight{{engine="{one.name}"}}', 0)
    wait_for(lambda: len(list(descriptors.iterdir())) <= before + 2)


# Not reading.


def test_a_slow_reader_holds_its_engine_back_and_nobody_else(engine: Engines, gateway: Gateways) -> None:
    piece, count = chunk(b"data: " + b"x" * 60_000 + b"\n\n"), 2000
    said: list[int] = []

    def flood(talk: Talk, seen: Seen) -> None:
        talk.say(STREAM_HEAD)
        for i in range(count if seen.json.get("flood") else 1):
            talk.say(piece)
            said.append(i)
        talk.say(END)

    gw = gateway(model(engine(flood).url))
    slow = gw.client().send(post(body(stream=True, flood=True)))
    slow.read_until(b"data: x")
    wait_for(lambda: settled(said))
    assert len(said) < count
    assert resident_mb(gw.process.pid) < 150
    quick = gw.client()
    for _ in range(20):
        assert quick.send(post(body(stream=True))).answer().complete
    assert slow.count_until(END) == len(piece) * count + len(END)


def settled(said: list[int]) -> bool:
    before = len(said)
    time.sleep(0.3)
    return len(said) == before


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6


def test_a_reader_that_has_stopped_is_let_go(engine: Engines, gateway: Gateways) -> None:
    piece = chunk(b"data: " + b"x" * 60_000 + b"\n\n")
    one = engine(streaming(*[piece] * 2000, END))
    gw = gateway("[timeouts]\nidle_s = 0.5\n" + model(one.url))
    slow = gw.client().send(post(body(stream=True)))
    slow.read_until(b"data: x")
    gw.until("requests_in_flight", 0)
    gw.until(f'engine_in_flight{{engine="{one.name}"}}', 0)


# Sending what cannot be answered.


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"model":1}', b"{}", b"\xff", b"[" * 100_000, b'{"model":"\xff"}']
)
def test_bodies_that_name_no_model(engine: Engines, gateway: Gateways, content: bytes) -> None:
    gw = gateway(model(engine(answering()).url))
    client = gw.client()
    answer = client.send(post(content)).answer()
    assert answer.status == 400
    assert "model" in answer.error["message"]
    assert client.send(post(body())).answer().status == 200


NO_HTTP = [
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"GET / HTTP/1.1\nhost: x\n\n" + b"POST\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n123456",
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nho st: x\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n folded: y\r\n\r\n",
    b"CONNECT example.com:443 HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}",
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nHost: y\r\ncontent-length: 2\r\n\r\n{}",
    b"POST /v1/chat/completions HTTP/1.0\r\nhost: x\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}",
    b"GET /v1/models HTTP/1.1\r\n\r\n",
]


@pytest.mark.parametrize("said", NO_HTTP)
def test_what_is_not_http_is_turned_away(engine: Engines, gateway: Gateways, said: bytes) -> None:
    one = engine(answering())
    gw = gateway(model(one.url))
    client = gw.client().send(said)
    answer = client.answer()
    assert answer.status >= 400
    assert not one.seen
    client.close()
    assert gw.ask(body()).status == 200


def test_heads_and_bodies_have_limits(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    gw = gateway("[limits]\nhead_bytes = 2048\nbody_bytes = 4096\n" + model(one.url))
    assert gw.ask(body(), more="x-a: " + "a" * 3000 + "\r\n").status == 431
    assert gw.ask(body(prompt="x" * 5000)).status == 413
    assert gw.ask(body(prompt="x" * 500_000)).status == 413
    assert gw.ask(body(prompt="x" * 4000)).status == 200
    assert gw.client().send(b"GET / HTTP/1.1\r\nx: " + b"a" * 600_000).answer().status == 431
    assert len(one.seen) == 1


def test_a_request_that_never_ends_is_turned_away(gateway: Gateways) -> None:
    gw = gateway("[limits]\nrequest_s = 0.5\nkeep_alive_s = 0.5\n[models.m]\n")
    assert gw.client().send(b"POST /v1/chat/completions HTTP/1.1\r\nx: ").answer().status == 408
    assert gw.client().send(post(body())[:-3]).answer().status == 408
    assert gw.client().at_end()


def test_more_at_once_than_the_limit_are_told_to_come_back(engine: Engines, gateway: Gateways) -> None:
    one = engine(silent)
    gw = gateway("[limits]\nrequests = 2\n" + model(one.url))
    clients = [gw.client().send(post(body())) for _ in range(2)]
    wait_for(lambda: len(one.seen) == 2)
    answer = gw.ask(body())
    assert answer.status == 503
    assert answer.header("retry-after") is not None
    for client in clients:
        client.close()


def test_requests_sent_ahead_are_answered_in_their_order(engine: Engines, gateway: Gateways) -> None:
    one = engine(lambda talk, seen: talk.say(STREAM_HEAD, chunk(seen.body), END))
    client = gateway(model(one.url)).client()
    client.send(b"".join(post(body(n=i)) for i in range(50)))
    assert [client.answer().raw for _ in range(50)] == [chunk(body(n=i)) + END for i in range(50)]


@pytest.mark.parametrize("said", [get(CHAT), b"PUT" + post(body())[4:], get("/v1/chat")])
def test_other_methods_and_paths_are_the_control_planes(gateway: Gateways, said: bytes) -> None:
    answer = gateway("[models.m]\n").client().send(said).answer()
    assert answer.status in {404, 405}
    assert answer.error["type"] == "invalid_request_error"


def test_a_client_that_wants_the_connection_closed(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(model(engine(answering()).url))
    for said in (post(body(), more="connection: close\r\n"), get("/health", "connection: close\r\n")):
        client = gw.client().send(said)
        assert client.answer().status == 200
        assert client.at_end()
