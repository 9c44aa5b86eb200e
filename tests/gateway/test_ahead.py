"""Clients that send ahead, and what all of them together may take of the gateway's memory and open files."""

import resource
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engines import END, EVENT, STREAM_HEAD, Behave, Engine, Seen, Talk, answering, chunk, silent, stuck, whole
from gateways import PATIENCE_S, Client, Gateway, body, get, model, post

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]

ITSELF = 1024
"""What the request for the metrics counts for."""


def wait_for(holds: Callable[[], object]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.005)


# Sending ahead.


def test_answers_that_nobody_reads_are_not_asked_for(engine: Engines, gateway: Gateways) -> None:
    count, size = 100, 200_000
    one = engine(answering(whole(b"x" * size)))
    gw = gateway(model(one.url))
    client = gw.client()
    client.send(b"".join(post(body(n=n)) for n in range(count)))
    for _ in range(20):  # while which all the others would be asked for
        assert gw.ask(body(n="other")).status == 200
    assert len(one.seen) - 20 < count
    assert gw.metrics()["requests_in_flight"] <= 1
    assert [client.answer().status for _ in range(count)] == [200] * count
    assert [seen.json["n"] for seen in one.seen if seen.json["n"] != "other"] == list(range(count))


def test_a_client_that_reads_nothing_for_long_is_let_go(engine: Engines, gateway: Gateways) -> None:
    """Whether the kernel's buffers are full between two answers or within one: each has its own limit."""
    limits = "[limits]\nkeep_alive_s = 0.3\n[timeouts]\nidle_s = 0.3\n"
    gw = gateway(limits + model(engine(answering(whole(b"x" * 200_000))).url))
    gw.client().send(b"".join(post(body()) for _ in range(100)))
    gw.until("held_bytes", ITSELF)
    gw.until("client_connections", 1)  # the one that asks


@pytest.mark.parametrize("bad", [b"\x16\x03\x01\r\n\r\n", b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n"])
def test_what_came_before_garbage_is_answered_before_it(engine: Engines, gateway: Gateways, bad: bytes) -> None:
    one = engine(answering(after_s=0.05))
    client = gateway(model(one.url)).client()
    client.send(post(body(n=0)) + get("/health") + post(body(n=1)) + bad + post(body(n=2)))
    assert [client.answer().status for _ in range(4)] == [200, 200, 200, 400]
    assert [seen.json["n"] for seen in one.seen] == [0, 1]


def test_garbage_while_an_answer_goes_on_waits_for_its_turn(engine: Engines, gateway: Gateways) -> None:
    def behave(talk: Talk, seen: Seen) -> None:
        talk.say(STREAM_HEAD, chunk(EVENT))
        while not going and not seen.left.wait(0.002):
            pass
        talk.say(END)

    going: list[bool] = []
    gw = gateway(model(engine(behave).url))
    client = gw.client().send(post(body(stream=True)))
    client.read_until(EVENT)
    client.send(b"\x16\x03\x01\r\n\r\n")
    going.append(True)
    assert client.answer().complete
    assert client.answer().status == 400
    gw.until("unreadable_total", 1)


@pytest.mark.parametrize(
    ("how", "answer"), [("close", ()), ("reset", (STREAM_HEAD, chunk(EVENT))), ("half", (STREAM_HEAD, chunk(EVENT)))]
)
def test_a_client_that_sent_ahead_is_heard_leaving(
    engine: Engines, gateway: Gateways, answer: tuple[bytes, ...], how: str
) -> None:
    one = engine(stuck(*answer))
    gw = gateway(model(one.url))
    client = gw.client().send(post(body(stream=True)))
    wait_for(lambda: one.seen)
    client.send(b"".join(post(body(n=n)) for n in range(4)))
    wait_for(lambda: gw.metrics()["held_bytes"] > 4 * ITSELF)
    if how == "half":
        client.sock.shutdown(socket.SHUT_WR)
    else:
        if how == "reset":
            client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
    assert one.seen[0].left.wait(PATIENCE_S)
    gw.until("held_bytes", ITSELF)
    assert len(one.seen) == 1


# All together.


def test_bodies_of_all_clients_together_are_bounded(engine: Engines, gateway: Gateways) -> None:
    one = engine(silent)
    gw = gateway("[limits]\nheld_bytes = 100000\n" + model(one.url))
    first = [gw.client().send(post(body(prompt="x" * 30_000))) for _ in range(3)]
    wait_for(lambda: len(one.seen) == 3)
    answer = gw.ask(body(prompt="x" * 30_000))
    assert (answer.status, answer.error["code"]) == (503, "overloaded")
    assert answer.header("retry-after") is not None
    assert answer.header("connection") == "close"
    for client in first:
        client.close()
    gw.until("held_bytes", ITSELF)
    one.behave = answering()
    assert gw.ask(body(prompt="x" * 30_000)).status == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_nothing_is_held_once_answers_have_begun(engine: Engines, gateway: Gateways, chunked: bool) -> None:
    gw = gateway(model(engine(stuck(STREAM_HEAD, chunk(EVENT))).url))
    said = post(body(prompt="x" * 1000))
    if chunked:
        head = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        said = head + chunk(body(prompt="x" * 1000)) + END
    clients = [gw.client().send(said) for _ in range(5)]
    for client in clients:
        client.read_until(EVENT)
    gw.until("held_bytes", ITSELF)
    half = gw.client().send(post(body(prompt="x" * 5000))[:-5])
    wait_for(lambda: gw.metrics()["held_bytes"] > 4000)
    half.close()
    gw.until("held_bytes", ITSELF)


def test_too_few_open_files_are_survived_and_told(engine: Engines, tmp_path: Path) -> None:
    gw = Gateway(tmp_path, model(engine(answering()).url))
    assert gw.ask(body()).status == 200
    taken = len(list(Path(f"/proc/{gw.process.pid}/fd").iterdir()))
    before = resource.prlimit(gw.process.pid, resource.RLIMIT_NOFILE, (taken + 12, taken + 12))
    assert taken + 12 < before[0]
    clients = [Client(gw.port) for _ in range(taken + 20)]
    statuses = [status_of(client) for client in clients]
    for client in clients:
        client.close()
    assert set(statuses) <= {200, 503, None}
    assert 503 in statuses
    wait_for(lambda: status_of(gw.client()) == 200)
    assert gw.metrics()["out_of_descriptors_total"] > 0
    said = gw.stop()
    assert said.count("\n") == 1
    assert "open files" in said


def status_of(client: Client) -> int | None:
    """None = closed without a word."""
    try:
        return client.send(post(body())).answer().status
    except (OSError, AssertionError):
        return None
