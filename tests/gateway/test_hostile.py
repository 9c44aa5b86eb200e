"""Requests that were made to be read in two ways, to cost much, or by chance: an error or a close, and no trace."""

import contextlib
import os
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines import Behave, Engine, answering
from gateways import CHAT, PATIENCE_S, Client, Gateway, body, model, post
from houses import quiet_house
from withstand.gateway.reader import Reader

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]
EXAMPLES = int(os.environ.get("WITHSTAND_FUZZ", "60"))

HEAD = b"POST " + CHAT.encode() + b" HTTP/1.1\r\nhost: x\r\n"
HIDDEN = post(body("hidden"))
CHUNKED = b"transfer-encoding: chunked\r\n"


def hiding(head: bytes, said: bytes = b"0\r\n\r\n") -> bytes:
    """One reader sees two requests where another sees one."""
    return HEAD + head + b"\r\n" + said + HIDDEN


SMUGGLED = {
    "both framings": hiding(b"content-length: 5\r\n" + CHUNKED),
    "both, the other way": hiding(CHUNKED + b"content-length: 5\r\n"),
    "two lengths": hiding(b"content-length: 5\r\ncontent-length: 0\r\n"),
    "a list of lengths": hiding(b"content-length: 5, 0\r\n"),
    "a length with a sign": hiding(b"content-length: +5\r\n"),
    "a length with an underscore": hiding(b"content-length: 0_5\r\n"),
    "a length in hex": hiding(b"content-length: 0x5\r\n"),
    "an endless length": hiding(b"content-length: 99999999999999999999\r\n"),
    "a coding that is none": hiding(b"transfer-encoding: xchunked\r\n"),
    "chunked twice": hiding(b"transfer-encoding: chunked, chunked\r\n"),
    "chunked and more": hiding(b"transfer-encoding: chunked, identity\r\n"),
    "two codings": hiding(b"transfer-encoding: identity\r\n" + CHUNKED),
    "two codings, the other way": hiding(CHUNKED + b"transfer-encoding: identity\r\n"),
    "a coding in HTTP/1.0": hiding(b"connection: keep-alive\r\n" + CHUNKED).replace(b"/1.1", b"/1.0", 1),
    "a space before the colon": hiding(b"transfer-encoding : chunked\r\n"),
    "a folded coding": hiding(b"transfer-encoding:\r\n chunked\r\ncontent-length: 5\r\n"),
    "a vertical tab": hiding(b"transfer-encoding:\x0bchunked\r\n"),
    "a bare line feed in the head": HEAD + b"a: b\n" + CHUNKED + b"\r\n0\r\n\r\n" + HIDDEN,
    "a bare return in the head": HEAD + b"a: b\r" + CHUNKED + b"\r\n0\r\n\r\n" + HIDDEN,
    "a zero byte in the head": HEAD + b"a: \x00\r\n" + CHUNKED + b"\r\n0\r\n\r\n" + HIDDEN,
    "a chunk's size with a sign": hiding(CHUNKED, b"-1\r\n\r\n"),
    "a chunk's size with a prefix": hiding(CHUNKED, b"0x0\r\n\r\n"),
    "a chunk's size that is too large": hiding(CHUNKED, b"ffffffffffffffffff\r\n\r\n"),
    "a chunk that is longer than it says": hiding(CHUNKED, b"1\r\naa\r\n0\r\n\r\n"),
    "a line feed behind a chunk's size": hiding(CHUNKED, b"1\na\r\n0\r\n\r\n"),
    "a return in a chunk's extension": hiding(CHUNKED, b"1;a\rb\r\na\r\n0\r\n\r\n"),
}


@pytest.fixture
def front(engine: Engines, gateway: Gateways) -> tuple[Gateway, Engine]:
    one = engine(answering())
    return gateway("[limits]\nrequest_s = 0.5\n" + model(one.url) + model(one.url, name="hidden")), one


def all_said(client: Client) -> bytes:
    """Until the connection ends; a gateway that hangs fails here."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while data := client.sock.recv(1 << 16):
            said += data
    return said


def test_nobody_hides_a_request_in_another(front: tuple[Gateway, Engine]) -> None:
    gw, one = front
    clients = {name: gw.client().send(said) for name, said in SMUGGLED.items()}
    for name, client in clients.items():  # all at once: each is let go only when it had time to read why
        answer = all_said(client)
        assert answer == b"" or 400 <= int(answer[9:12]) < 600, name
        assert answer.count(b"HTTP/1.1 ") <= 1, name
        assert not one.seen, name
    leaves_no_trace(gw)


def test_what_is_odd_and_good_passes(front: tuple[Gateway, Engine]) -> None:
    gw, one = front
    content = body(x="y")
    size = b"%x" % len(content)
    for said in (
        b"\r\n\r\n" + post(content),
        HEAD + CHUNKED + b"\r\n" + size + b";a=b;c\r\n" + content + b"\r\n0;z\r\nx-trailer: 1\r\n\r\n",
        HEAD + b"Transfer-Encoding: \t chunked \r\n\r\n000" + size.upper() + b"\r\n" + content + b"\r\n000\r\n\r\n",
    ):
        assert gw.client().send(said).answer().status == 200, said
        assert one.seen.pop().body == content


@pytest.mark.parametrize("path", [CHAT, "/admin/engines"])
def test_a_length_above_the_limit_is_refused_before_the_body_comes(front: tuple[Gateway, Engine], path: str) -> None:
    gw, one = front
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: {1 << 40}\r\n\r\n"
    client = gw.client().send(head.encode())
    answer = client.answer()
    assert (answer.status, answer.error["message"]) == (413, f"The body has more than {64 << 20} bytes.")
    assert client.at_end()
    client = gw.client().send(post(body()) + head.encode())
    assert [client.answer().status for _ in range(2)] == [200, 413], "what came before it is answered"
    assert len(one.seen) == 1


def test_a_hundred_thousand_tiny_chunks(front: tuple[Gateway, Engine]) -> None:
    gw, one = front
    content = body(x="y" * 100_000)
    before = resident_mb(gw)
    gw.client().send(HEAD + CHUNKED + b"\r\n")
    client = gw.client()
    client.send(HEAD + CHUNKED + b"\r\n" + b"".join(b"1\r\n%c\r\n" % byte for byte in content) + b"0\r\n\r\n")
    assert client.answer().status in {200, 408}  # the second on a machine that does much else
    assert all(seen.body == content for seen in one.seen)
    assert resident_mb(gw) < before + 40


def test_thousands_of_offers_to_speak_another_protocol_in_one_read_take_no_more_than_requests() -> None:
    offer = b"GET / HTTP/1.1\r\nhost: x\r\nupgrade: a\r\nconnection: upgrade\r\n\r\n"
    with quiet_house() as house:
        reader = Reader(house, lambda: None)
        tracemalloc.start()
        reader.read(offer * 3000, 0)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(reader.complete) == 3000
        assert reader.refusal is None
        reader.close()
        assert house.held_bytes == 0
    assert peak < 30 << 20


def test_a_body_in_tiny_chunks_takes_no_more_than_itself() -> None:
    some = b"2\r\nab\r\n" * 1000
    with quiet_house() as house:
        reader = Reader(house, lambda: None)
        reader.read(HEAD + CHUNKED + b"\r\n", 0)
        tracemalloc.start()
        for _ in range(100):
            reader.read(some, 0)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        reader.read(b"0\r\n\r\n", 0)
    assert reader.complete.pop().body == b"ab" * 100_000
    assert held < 2 * 200_000


@pytest.mark.parametrize(
    "said",
    [b"1;x=", b"1\r\n{\r\n0\r\nx: ", b"1\r\n{\r\n0\r\n" + b"x: y\r\n" * 100_000],
    ids=["a chunk's extension", "a trailer", "many trailers"],
)
def test_what_is_neither_head_nor_body_has_an_end_too(engine: Engines, gateway: Gateways, said: bytes) -> None:
    one = engine(answering())
    gw = gateway(model(one.url))
    client = gw.client()
    with contextlib.suppress(OSError):
        client.send(HEAD + CHUNKED + b"\r\n" + said + b"a" * 1_000_000)
    assert client.answer().status == 431
    assert not one.seen
    leaves_no_trace(gw)


def resident_mb(gw: Gateway) -> float:
    return int(Path(f"/proc/{gw.process.pid}/statm").read_text().split()[1]) * 4096 / 1e6


def test_slow_lorises_are_let_go_and_hinder_nobody(front: tuple[Gateway, Engine]) -> None:
    gw, _ = front
    slow = [gw.client().send(HEAD[: i + 1]) for i in range(len(HEAD))]
    slow += [gw.client().send(HEAD + b"content-length: 9\r\n\r\n{") for _ in range(20)]
    slow += [gw.client().send(HEAD + CHUNKED + b"\r\n1\r\n{\r\n") for _ in range(20)]
    assert gw.ask(body()).status == 200
    for client in slow:
        assert all_said(client)[9:12] == b"408"
    leaves_no_trace(gw)


def test_huge_heads_and_many_headers(front: tuple[Gateway, Engine]) -> None:
    gw, one = front
    for said in (
        HEAD + b"x: " + b"a" * 70_000 + b"\r\n\r\n",
        HEAD + b"x: y\r\n" * 20_000 + b"\r\n",
        b"POST /" + b"a" * 70_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
        HEAD + b"a" * 70_000,
    ):
        client = gw.client()
        with contextlib.suppress(OSError):
            client.send(said)
        assert client.answer().status in {431, 408}  # the second where the machine was busy for half a second
    assert not one.seen
    leaves_no_trace(gw)


WHOLE = (
    post(body(stream=True, messages=[{"role": "user", "content": "hi"}])),
    HEAD + CHUNKED + b'\r\nb\r\n{"model":"m\r\n2\r\n"}\r\n0\r\n\r\n',
    post(body()) + post(body(n=1)),
    b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n",
    post(body(), more="expect: 100-continue\r\nx-request-id: a\r\nconnection: close\r\n"),
)
MADE_UP = (
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b":",
    b"0",
    b"\x00",
    b"\xff",
    b"chunked",
    CHUNKED,
    b"content-length: 3\r\n",
    b"{",
    b"\\",
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    data = draw(st.sampled_from(WHOLE))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from((0, 0, 1, 2, 30))))
        put = draw(st.one_of(st.sampled_from(MADE_UP), st.binary(max_size=4), st.just(data[start:end] * 2)))
        data = data[:start] + put + data[end:]
    return data


def test_damaged_requests_have_an_end(front: tuple[Gateway, Engine]) -> None:
    gw, _ = front

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(damaged(), st.integers(0, 400))
    def end(said: bytes, cut: int) -> None:
        client = Client(gw.port)
        with client.sock, contextlib.suppress(ConnectionError):
            client.send(said[:cut]).send(said[cut:])
            client.sock.settimeout(0.02)
            with contextlib.suppress(TimeoutError):
                client.sock.recv(1 << 16)
            client.sock.settimeout(PATIENCE_S)
            with contextlib.suppress(OSError):  # it may be over already
                client.sock.shutdown(socket.SHUT_WR)
            all_said(client)

    end()
    leaves_no_trace(gw)


def leaves_no_trace(gw: Gateway) -> None:
    """Whoever fuzzed has gone, and nothing is kept of it; that the gateway says nothing is seen at its end."""
    for client in gw._clients:
        client.close()
    assert gw.ask(body()).status == 200
    gw.until("requests_in_flight", 0)
    gw.until("client_connections", 1)
    assert gw.metrics()["held_bytes"] <= 1024  # of the very request that asks
