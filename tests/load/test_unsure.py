"""Which events of a late read are marked: all whose stamp is that of something that came after them."""

import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from withstand import clock, plugins
from withstand.load.address import locate, parse_address
from withstand.load.connection import READ_BYTES
from withstand.load.exchange import Exchange
from withstand.load.loop import Loop
from withstand.load.owner import Route
from withstand.load.pacing import Due
from withstand.load.selfcheck import SelfCheck
from withstand.load.transport import Transport
from withstand.record import LOOK_NS
from withstand.request import Message, Request
from withstand.spec import Timeouts

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ROLE = b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n'
TOKEN = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"completion_tokens":2}}\n\n'
DONE = b"data: [DONE]\n\n"
_FAR_NS = 1 << 62


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


@pytest.fixture
def stream(stamping: None) -> Iterator[SimpleNamespace]:
    """A request that was sent; ``say(bytes)`` answers, ``look()`` makes the loop look, ``send()`` asks again."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = parse_address(f"http://127.0.0.1:{server.getsockname()[1]}")
        route = Route(address=address, located=locate(address, 2.0), context=None, timeouts=Timeouts())
        server.accept()[0].close()
        loop = Loop(nap_ns=0)
        check = SelfCheck(0)
        transport = Transport(route, loop, check)
        dialect = plugins.load("wire", "openai-chat", "test")

        def send() -> Exchange:
            request = Request(id=0, session=0, messages=(Message(role="user", content="hi"),))
            exchange = Exchange(Due(request, 0, 0), dialect=dialect, stream=True, ended=lambda _: None)
            exchange.payload = b"POST / HTTP/1.1\r\n\r\n"
            transport.send(exchange)
            return exchange

        exchange = send()
        loop.turn(1.0, _FAR_NS)
        there, _ = server.accept()
        with there:
            there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            there.recv(100)
            yield SimpleNamespace(
                say=there.sendall,
                hang_up=lambda: there.shutdown(socket.SHUT_WR),
                look=lambda: loop.turn(1.0, _FAR_NS),
                check=check,
                loop=loop,
                reply=exchange.reply,
                send=send,
            )
        transport.cancel_all()
        transport.stamps.close()
        loop.close()


@pytest.mark.parametrize(
    ("pieces", "events", "unsure"),
    [
        ((chunk(TOKEN),), 1, []),
        ((chunk(TOKEN), chunk(TOKEN), chunk(TOKEN)), 3, [0, 1]),
        ((chunk(ROLE), chunk(TOKEN)), 1, []),
        ((chunk(TOKEN), chunk(USAGE), chunk(DONE)), 1, [0]),
        ((chunk(TOKEN), chunk(TOKEN)[:20]), 1, [0]),
        ((chunk(TOKEN + TOKEN),), 2, []),
        ((chunk(TOKEN), b"0\r\n\r\n"), 1, [0]),
        ((chunk(TOKEN), chunk(b": on\n\n")), 1, [0]),
        ((chunk(TOKEN), b"2f\r\n"), 1, [0]),
    ],
)
def test_a_late_read(stream: SimpleNamespace, pieces: tuple[bytes, ...], events: int, unsure: list[int]) -> None:
    began_ns = clock.now_ns()
    stream.say(HEAD + chunk(ROLE))
    stream.look()
    said_ns = clock.now_ns()
    for piece in pieces:
        stream.say(piece)
    clock.sleep_s(20 * LOOK_NS / 1e9)
    stream.look()
    assert len(stream.reply.chunk_ns) == events
    assert stream.reply.unsure == unsure
    assert len(stream.reply.unsure_since_ns) == len(unsure)
    assert all(began_ns < since_ns <= said_ns for since_ns in stream.reply.unsure_since_ns)


def test_a_server_that_has_cut_a_chunk_may_do_so_again(stream: SimpleNamespace) -> None:
    stream.say(HEAD + chunk(ROLE))
    stream.look()
    for part in (chunk(TOKEN)[:-2], b"\r\n"):
        stream.say(part)
        stream.look()
    said_ns = clock.now_ns()
    stream.say(chunk(TOKEN)[:-2])
    stream.say(b"\r\n")
    clock.sleep_s(20 * LOOK_NS / 1e9)
    stream.look()
    assert len(stream.reply.chunk_ns) == 2
    assert stream.reply.unsure[-1] == 1  # so is the one before, where the machine was elsewhere
    assert stream.reply.unsure_since_ns[-1] <= said_ns


@pytest.mark.parametrize("after", [b": on\n\n", b"data: {", b""], ids=["a comment", "half an event", "its end"])
def test_a_late_read_of_a_body_that_ends_with_its_connection(stream: SimpleNamespace, after: bytes) -> None:
    stream.say(HEAD.replace(b"Transfer-Encoding: chunked\r\n", b"") + ROLE)
    stream.look()
    stream.say(TOKEN)
    clock.sleep_s(20 * LOOK_NS / 1e9)
    if after:
        stream.say(after)
    else:
        stream.hang_up()
    stream.look()
    stream.hang_up()
    stream.look()
    assert len(stream.reply.chunk_ns) == 1
    assert stream.reply.unsure == [0]


def test_an_event_that_was_read_in_time_is_sure_whatever_ends_it(
    stream: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Loop, "may_have_waited", lambda *_: False)
    stream.say(HEAD.replace(b"Transfer-Encoding: chunked\r\n", b"") + ROLE)
    stream.look()
    stream.say(TOKEN)
    stream.look()
    stream.hang_up()
    stream.look()
    assert len(stream.reply.chunk_ns) == 1
    assert stream.reply.unsure == []


def test_the_last_event_before_a_break_is_unsure(stream: SimpleNamespace) -> None:
    stream.say(HEAD + chunk(ROLE))
    stream.look()
    for _ in range(3):
        stream.say(chunk(TOKEN))
        stream.look()
    stream.hang_up()
    stream.look()
    assert len(stream.reply.chunk_ns) == 3
    assert stream.reply.unsure == [2]


def test_a_late_read_of_chunks_that_are_known_by_their_look(stream: SimpleNamespace) -> None:
    stream.say(HEAD + chunk(ROLE))
    stream.look()
    for _ in range(3):
        stream.say(chunk(TOKEN))
        stream.look()
    said_ns = clock.now_ns()
    for _ in range(3):
        stream.say(chunk(TOKEN))
    clock.sleep_s(20 * LOOK_NS / 1e9)
    stream.look()
    assert len(stream.reply.chunk_ns) == 6
    assert stream.reply.unsure == [3, 4]
    assert stream.check.shared_reads == 1
    assert max(stream.reply.unsure_since_ns) <= said_ns


def test_what_a_full_read_left_over_may_have_come_before_the_next_look(stream: SimpleNamespace) -> None:
    stream.say(HEAD + chunk(ROLE))
    stream.look()
    said_ns = clock.now_ns()
    stream.say(chunk(b": %b\n\n" % (b"." * READ_BYTES)) + chunk(TOKEN) + chunk(TOKEN) + chunk(TOKEN))
    stream.look()
    clock.sleep_s(20 * LOOK_NS / 1e9)
    stream.look()
    assert stream.reply.unsure == [0, 1]
    assert max(stream.reply.unsure_since_ns) <= said_ns


def test_bytes_that_came_before_a_request_are_not_its_answer(stream: SimpleNamespace) -> None:
    stream.say(HEAD + chunk(TOKEN) + chunk(DONE) + b"0\r\n\r\n")
    stream.look()
    stream.say(HEAD + chunk(TOKEN) + chunk(DONE) + b"0\r\n\r\n")
    clock.sleep_s(20 * LOOK_NS / 1e9)
    exchange = stream.send()
    stream.look()
    assert exchange.reply.chunk_ns == []
    assert (exchange.retries, exchange.reused) == (1, False)


def test_the_stamp_of_a_full_read_may_be_that_of_what_is_behind_it(stream: SimpleNamespace) -> None:
    stream.say(HEAD + chunk(ROLE))
    stream.look()
    framed = len(chunk(TOKEN.replace(b"x", b"x" * 5000))) - 5000
    long = chunk(TOKEN.replace(b"x", b"x" * (READ_BYTES - framed)))
    assert len(long) == READ_BYTES
    stream.say(long)
    stream.say(chunk(TOKEN))
    clock.sleep_s(20 * LOOK_NS / 1e9)
    stream.look()
    stream.look()
    assert len(stream.reply.chunk_ns) == 2
    assert stream.reply.unsure == [0]
