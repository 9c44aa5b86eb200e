"""The short way of a lone token changes nothing but the cost."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand import plugins
from withstand.load.exchange import Exchange
from withstand.load.pacing import Due
from withstand.load.shortway import lone_object
from withstand.request import Message, Request

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
DIALECT = plugins.load("wire", "openai-chat", "test")


def chunk(body: bytes, more: bytes = b"", *, upper: bool = False) -> bytes:
    size = (b"%X" if upper else b"%x") % len(body)
    return size + more + b"\r\n" + body + b"\r\n"


def event(text: str, end: bytes = b"\n\n") -> bytes:
    return b'data: {"choices":[{"delta":{"content":"%b"}}]}' % text.encode() + end


def exchange() -> Exchange:
    request = Request(id=0, session=0, messages=(Message(role="user", content="hi"),), last_turn=False)
    return Exchange(Due(request, 0, 0), dialect=DIALECT, stream=True, ended=lambda _: None)


words = st.text(
    st.characters(codec="utf-8", exclude_characters='"\\', exclude_categories=["Cc"]), min_size=1, max_size=9
)
ends = st.sampled_from([b"\n\n", b"\n\n", b"\r\n\r\n", b"\r\r", b"\n: note\n\n", b"\nid: 7\n\n"])


@st.composite
def pieces(draw: st.DrawFn) -> list[bytes]:
    """The body's chunks: most hold one event, some hold two or a part, and some are written oddly."""
    events = [event(draw(words), draw(ends)) for _ in range(draw(st.integers(1, 8)))]
    stream = b"".join(events)
    edges = {0, len(stream), *itertools.accumulate(map(len, events)), *draw(st.lists(st.integers(0, 400), max_size=3))}
    bodies = [stream[a:b] for a, b in itertools.pairwise(sorted(e for e in edges if e <= len(stream)))]
    return [chunk(b, draw(st.sampled_from([b"", b"", b";x=y"])), upper=draw(st.booleans())) for b in bodies if b]


@given(pieces(), st.lists(st.integers(0, 900), max_size=3))
def test_it_changes_nothing(chunks: list[bytes], cuts: list[int]) -> None:
    stream = HEAD + b"".join(chunks) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    edges = {0, len(stream), len(HEAD), *itertools.accumulate([len(HEAD), *map(len, chunks)]), *cuts}
    short, long = exchange(), exchange()
    for a, b in itertools.pairwise(sorted(e for e in edges if e <= len(stream))):
        long.feed(stream[a:b], a)
        if not short.take_lone(stream[a:b], a):
            short.feed(stream[a:b], a)
    assert (short.reply.chunk_ns, short.reply.answer()) == (long.reply.chunk_ns, long.reply.answer())
    assert short.answer.complete
    assert short.reply.verdict() == long.reply.verdict()


def test_it_is_taken_when_nothing_is_pending() -> None:
    ours = exchange()
    assert not ours.take_lone(chunk(event("a")), 1)
    ours.feed(HEAD + chunk(event("a")), 1)
    assert ours.take_lone(chunk(event("b")), 2)
    assert ours.reply.chunk_ns == [1, 2]
    ours.feed(chunk(event("c"))[:9], 3)
    assert not ours.take_lone(chunk(event("d")), 4)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"0\r\n\r\n",
        chunk(event("a") + event("b")),
        chunk(event("a")) + chunk(event("b")),
        chunk(event("a"))[:-1],
        chunk(b"data: {}\ndata: {}\n\n"),
        chunk(b"data: {}\rdata: {}\n\n"),
        chunk(b"data: [DONE]\n\n"),
        b"ff" + chunk(event("a")),
    ],
)
def test_everything_else_goes_the_long_way(data: bytes) -> None:
    assert lone_object(data) is None
