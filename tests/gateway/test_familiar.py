"""Heads that are known by their bytes: nothing is taken for one that a parser reads in another way, or not at all."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import httptools
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engines import END, STREAM_HEAD, Behave, Engine, answering, chunk, whole
from gateways import CHAT, Gateway, body, model, post
from houses import quiet_house
from withstand.gateway.address import origin_of
from withstand.gateway.engine import Engine as Known
from withstand.gateway.familiar import Memory, familiar
from withstand.gateway.house import House
from withstand.gateway.incoming import Incoming
from withstand.gateway.link import AnswerHead, Link
from withstand.gateway.reader import Reader

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]

LINE = b"POST " + CHAT.encode() + b" HTTP/1.1\r\n"


def understood(reads: Sequence[bytes], busy: int = 0, *, forgets: bool = False) -> tuple[list[Any], int]:
    """All that a reader makes of these reads, and how many requests it has recognized.

    ``busy``: bits, for the reads during which another request is being answered. ``forgets``: each head is new to it.
    """
    with quiet_house(head_bytes=1024, body_bytes=2048, held_bytes=8192) as house:
        said, recognized = _understood(house, reads, busy, forgets=forgets)
        assert house.held_bytes == 0
    return said, recognized


def _understood(house: House, reads: Sequence[bytes], busy: int, *, forgets: bool) -> tuple[list[Any], int]:
    said: list[Any] = []
    recognized = 0
    reader = Reader(house, lambda: said.append("continue"))

    def take(incoming: Incoming) -> None:
        head = incoming.head
        told = head.method, head.target, head.version, head.headers, head.keeps_alive, head.route
        said.append((*told, incoming.body, incoming.size, incoming.held, incoming.read_ns))
        house.let_go(incoming)

    for i, data in enumerate(reads):
        if reader.refusal is not None:
            break
        if forgets:
            reader._memory.known = None
        is_busy = busy >> i & 1
        incoming = None if is_busy else reader.recognized(data, i)
        if incoming is not None:
            recognized += 1
            take(incoming)
            continue
        reader.read(data, i)
        while reader.complete and not is_busy:
            take(reader.complete.popleft())
    while reader.complete:
        take(reader.complete.popleft())
    said += [reader.refusal, reader.coming is None, house.held_bytes]
    reader.close()
    return said, recognized


def cut(said: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(said), *(cut % (len(said) + 1) for cut in cuts)})
    return [said[start:end] for start, end in pairwise(places)]


# Requests.

PLAIN = LINE + b"host: x\r\nX-A:  b \r\ncontent-length: %d\r\nx-c: d\r\n\r\n%b"
LAST = LINE + b"host: x\r\nContent-Length:%d\r\n\r\n%b"
AGAIN = (
    PLAIN % (3, b"{ }"),
    PLAIN % (0, b""),
    PLAIN % (100, b"x" * 100),
    PLAIN % (4, b"\r\n\r\n"),
    PLAIN.replace(b"%d", b"0000%d") % (2, b"{}"),
)
ODD = (
    LINE + b"host: x\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    LINE + b"host: x\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\n{}",
    LINE + b"host: x\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    LINE + b"host: x\r\ncontent-length: 2, 2\r\n\r\n{}",
    LINE + b"host: x\r\ncontent-length: +2\r\nx-c: d\r\n\r\n{}",
    LINE + b"host: x\r\ncontent-length: 2 2\r\nx-c: d\r\n\r\n{}",
    LINE + b"host: x\r\ncontent-length: 0x2\r\nx-c: d\r\n\r\n{}",
    LINE + b"host: x\r\nX-A:  b \r\ncontent-length: 99999999999999999999\r\nx-c: d\r\n\r\n{}",
    LINE + b"host: x\r\nX-A:  b \r\ncontent-length: \r\nx-c: d\r\n\r\n{}",
    LINE + b"host: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    LINE + b"host: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\ncontent-length: 9\r\n\r\n",
    LINE + b"host: x\nX-A:  b \r\ncontent-length: 2\r\nx-c: d\r\n\r\n{}",
    LINE + b"host: x\r\nx: \r\n content-length: 2\r\ncontent-length: 2\r\n\r\n{}",
    LINE + b"host: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}",
    LINE + b"host: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nconnection: close\r\n\r\n",
    LINE + b"host: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n{}",
    LINE + b"host: x\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: 2\r\n\r\n{}",
    LINE.replace(b"1.1", b"1.0") + b"host: x\r\ncontent-length: 2\r\n\r\n{}",
    LINE.replace(b"POST", b"GET") + b"host: x\r\ncontent-length: 2\r\n\r\n{}",
    b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n",
    b"\r\n" + PLAIN % (2, b"{}"),
    PLAIN % (2, b"{}") + b"\r\n",
    PLAIN % (2, b"{}\r\n"),
    PLAIN % (2, b"{"),
    PLAIN % (3000, b"x" * 3000),
    LINE + b"host: x\r\nx: " + b"y" * 1100 + b"\r\ncontent-length: 2\r\n\r\n{}",
)
plain = st.builds(
    lambda form, content: form % (len(content), content),
    st.sampled_from((PLAIN, LAST)),
    st.one_of(st.binary(max_size=12), st.just(b"x" * 100)),
)
request = st.one_of(plain, plain, st.sampled_from(AGAIN + ODD))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    said = draw(plain)
    at = draw(st.integers(0, len(said)))
    put = st.sampled_from((b"\r\n", b"\n", b"\r", b" ", b"\t", b"0", b"9", b":", b"content-length: 1\r\n", b"\x00"))
    return said[:at] + draw(put) + said[at + draw(st.integers(0, 2)) :]


@given(
    st.lists(st.one_of(request, request, damaged()), max_size=8),
    st.lists(st.integers(0, 10_000), max_size=3),
    st.integers(0, 255),
    st.booleans(),
)
def test_a_reader_that_remembers_heads_reads_what_one_that_does_not_reads(
    requests: list[bytes], cuts: list[int], busy: int, whole_reads: bool
) -> None:
    reads = requests if whole_reads else cut(b"".join(requests), cuts)
    reads = [data for data in reads if data]
    assert understood(reads, busy)[0] == understood(reads, busy, forgets=True)[0]


@pytest.mark.parametrize("then", AGAIN)
def test_a_head_is_recognized_whatever_its_bodys_length(then: bytes) -> None:
    for first in (PLAIN % (2, b"{}"), then):
        assert understood([first, then, then])[1] == 2


@pytest.mark.parametrize("then", ODD)
def test_anything_else_is_not(then: bytes) -> None:
    first = PLAIN % (2, b"{}")
    assert understood([first, then])[1] == 0
    assert understood([first, then, first])[0] == understood([first, then, first], forgets=True)[0]
    assert understood([then, then])[0] == understood([then, then], forgets=True)[0]


class Heard:
    """What httptools makes of bytes."""

    def __init__(self, data: bytes) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.body, self.messages = b"", 0
        httptools.HttpRequestParser(self).feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        self.messages += 1


@given(plain, st.one_of(plain, request, damaged()))
@example(PLAIN % (2, b"{}"), PLAIN % (12, b"{}" * 6))
def test_what_is_known_is_one_message_to_a_parser_too(first: bytes, then: bytes) -> None:
    before = Heard(first)
    known = familiar(before, first, len(before.body))
    assert known is not None
    assert known.body_at(first)
    at = known.body_at(then)
    if at:
        heard = Heard(then)
        assert (heard.messages, heard.body) == (1, then[at:])
        assert [name for name, _ in heard.headers] == [name for name, _ in before.headers]
        for now, was in zip(heard.headers, before.headers, strict=True):
            assert now == was or (now[0] == b"content-length" and int(now[1]) == len(heard.body))


def test_peers_whose_heads_are_never_the_same_are_learned_less_often() -> None:
    memory: Memory[int] = Memory()
    known = []
    for i in range(1000):
        memory.meet(i, LINE + b"x: %d\r\ncontent-length: 2\r\n\r\n{}" % i, 2)
        known.append(memory.known)
    assert len(set(known)) < 100
    memory.strange = 0  # one was known
    memory.meet(1000, LINE + b"content-length: 2\r\n\r\n{}", 2)
    assert memory.known is not known[-1]


# Over sockets.


def test_nobody_hides_a_request_behind_a_head_that_is_known(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    gw = gateway("[limits]\nrequest_s = 0.5\n" + model(one.url))
    hidden = post(body("hidden"))
    for said, statuses in (
        (post(body()) + hidden, [200, 404]),
        (post(body())[:-1], [408]),
        (LINE + b"host: gateway\r\ncontent-length: 13\r\ncontent-length: 0\r\n\r\n" + body(), [400]),
        (LINE + b"host: gateway\r\ncontent-length: 0\r\ncontent-length: 13\r\n\r\n" + body() + hidden, [400]),
        (LINE + b"host: gateway\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(body()) + END + hidden, [200, 404]),
        (post(body(), more="transfer-encoding: chunked\r\n") + hidden, [400]),
    ):
        client = gw.client()
        for n in range(3):
            assert client.send(post(body(n="x" * n))).answer().status == 200
        client.send(said)
        assert [client.answer().status for _ in statuses] == statuses, said
        client.close()
        assert one.seen.pop().body in {body(), body(n="xx")}
        assert all(b"hidden" not in seen.body for seen in one.seen)
        one.seen.clear()


def test_requests_with_one_head_have_each_their_own_body_id_and_answer(engine: Engines, gateway: Gateways) -> None:
    one = engine(lambda talk, seen: talk.say(whole(seen.body)))
    client = gateway(model(one.url)).client()
    sizes = [0, 3, 3, 700, 1, 20_000]
    answers = [client.send(post(body(x="y" * size))).answer() for size in sizes]
    assert [answer.raw for answer in answers] == [body(x="y" * size) for size in sizes]
    assert [seen.body for seen in one.seen] == [body(x="y" * size) for size in sizes]
    assert [seen.header("content-length") for seen in one.seen] == [str(len(seen.body)) for seen in one.seen]
    ids = {answer.header("x-request-id") for answer in answers}
    assert ids == {seen.header("x-request-id") for seen in one.seen}
    assert len(ids) == len(sizes)


# Answers.


class Taker:
    """Whose request a link carries; it writes down what it hears."""

    def __init__(self, said: list[Any]) -> None:
        self._said = said
        self.over = False

    def answered(self, link: Link, head: bytes, read_ns: int) -> None:
        told = link.head
        facts = told.status, told.chunked, told.is_events, told.is_named, told.has_hop_by_hop, told.is_framed
        self._said.append((head[: link.body_at], *facts, link.ends_with_connection, b"written"))
        self._said.append(head[link.body_at :])
        link.flow(self._said.append, lambda _: None)

    def began(self, read_ns: int) -> None:
        self._said.append("began")

    def finished(self, link: Link) -> None:
        self.over = True
        self._said.append(("finished", link.head.is_reusable, link.has_surplus))

    def lost(self, link: Link) -> None: ...
    def broke(self, link: Link, what: str) -> None:
        self.over = True
        self._said.append("broke")


def heard(answers: Sequence[list[bytes]], *, forgets: bool = False) -> tuple[list[Any], Memory[AnswerHead]]:
    """All that passages hear of answers, each of which comes in some reads. ``forgets``: each head is new."""
    said: list[Any] = []
    known = Known(origin_of("http://127.0.0.1:9"))
    link: Link | None = None
    for reads in answers:
        if link is None:
            link = Link(known)
            link.connection_made(_Nowhere())
        taker = Taker(said)
        link.carry(taker, b"", b"")
        for data in reads:
            if forgets:
                known.memory.known = None
            if not taker.over:
                link.data_received(data)
        if not taker.over or not link.release():
            link.passage = None
            link = None
            said.append("another connection")
    return said, known.memory


class _Nowhere(asyncio.Transport):
    def write(self, data: Any) -> None: ...
    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None: ...


SIZED = b"HTTP/1.1 200 OK\r\ndate: x\r\nContent-Length: %d\r\nserver: y\r\n\r\n%b"
answer = st.one_of(
    st.builds(lambda content: SIZED % (len(content), content), st.binary(max_size=12)),
    st.builds(whole, st.binary(max_size=12)),
    st.sampled_from(
        (
            STREAM_HEAD + chunk(b"data: x\n\n") + END,
            STREAM_HEAD + chunk(b"data: x\n\n") + b"0\r\nx-request-id: a\r\nconnection: close\r\n\r\n",
            STREAM_HEAD + END,
            STREAM_HEAD,
            SIZED % (2, b"{}x"),
            SIZED % (2, b"{}\r\n"),
            SIZED % (2, b"{}") + SIZED % (2, b"{}"),
            SIZED % (3, b"{}"),
            SIZED.replace(b"200 OK", b"204 No Content") % (0, b""),
            SIZED.replace(b"200 OK", b"304 Not Modified") % (2, b""),
            SIZED.replace(b"200 OK", b"500 Oops") % (2, b"{}"),
            SIZED.replace(b"date: x", b"connection: close") % (2, b"{}"),
            SIZED.replace(b"date: x", b"content-length: 2") % (2, b"{}"),
            SIZED.replace(b"date: x", b"transfer-encoding: chunked") % (2, b"{}"),
            SIZED.replace(b"HTTP/1.1", b"HTTP/1.0") % (2, b"{}"),
            b"HTTP/1.1 100 Continue\r\n\r\n" + SIZED % (2, b"{}"),
            b"HTTP/1.1 103 Early Hints\r\ncontent-length: 2\r\n\r\n" + SIZED % (2, b"{}"),
        )
    ),
)


@given(st.lists(st.tuples(answer, st.lists(st.integers(0, 200), max_size=2)), max_size=8))
def test_a_link_that_remembers_heads_hears_what_one_that_does_not_hears(told: list[tuple[bytes, list[int]]]) -> None:
    answers = [[data for data in cut(said, cuts if len(cuts) > 1 else []) if data] for said, cuts in told]
    assert heard(answers)[0] == heard(answers, forgets=True)[0]


def test_answers_with_a_known_head_are_told_without_the_parser() -> None:
    _, memory = heard([[SIZED % (2, b"{}")], [SIZED % (3, b"{ }")], [SIZED % (2, b"{}")]])
    assert memory.known is not None
    assert memory.strange == 0


def test_a_stream_with_a_known_head_that_is_no_stream_is_no_answer(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering(STREAM_HEAD + chunk(b"data: x\n\n") + END))
    client = gateway(model(one.url)).client()
    assert client.send(post(body(stream=True))).answer().complete
    one.behave = answering(STREAM_HEAD + b"no chunk\r\n")
    assert client.send(post(body(stream=True))).answer().status == 502
