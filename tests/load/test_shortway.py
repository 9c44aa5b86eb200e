"""The short way of a token changes nothing but the cost."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand import plugins
from withstand.load.exchange import Exchange
from withstand.load.pacing import Due
from withstand.request import Message, Request

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
DIALECT = plugins.load("wire", "openai-chat", "test")


def chunk(body: bytes, more: bytes = b"", *, upper: bool = False) -> bytes:
    size = (b"%X" if upper else b"%x") % len(body)
    return size + more + b"\r\n" + body + b"\r\n"


def event(text: str, end: bytes = b"\n\n", more: bytes = b"") -> bytes:
    return b'data: {"id":"c-1","choices":[{"delta":{"content":"%b"}}]%b}' % (text.encode(), more) + end


def take(exchange: Exchange, data: bytes, stamp_ns: int) -> bool:
    """As a connection does it; whether the short way was taken."""
    if exchange.short_way is not None and exchange.short_way.take(data, stamp_ns):
        return True
    exchange.feed(data, stamp_ns)
    return False


def exchange() -> Exchange:
    request = Request(id=0, session=0, messages=(Message(role="user", content="hi"),), last_turn=False)
    return Exchange(Due(request, 0, 0), dialect=DIALECT, stream=True, ended=lambda _: None)


words = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters='"\\', exclude_categories=["Cc"]), min_size=1, max_size=9),
    st.text(" etaoin", min_size=1, max_size=9),
    st.sampled_from(
        [r"\"", r"\n", r"\u00e9", "\x7f", '","finish_reason":"stop', '"}}],"usage":{"completion_tokens":7}}']
    ),
)
ends = st.sampled_from([b"\n\n", b"\n\n", b"\r\n\r\n", b"\r\r", b"\n: note\n\n", b"\nid: 7\n\n"])
mores = st.sampled_from(
    [b"", b"", b"", b',"usage":{"completion_tokens":3}', b',"object":"x","content":"y"', b',"error":"no"']
)


@st.composite
def pieces(draw: st.DrawFn) -> list[bytes]:
    """The body's chunks: most hold one event, some hold two or a part, and some are written oddly."""
    events = [event(draw(words), draw(ends), draw(mores)) for _ in range(draw(st.integers(1, 12)))]
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
        take(short, stream[a:b], a)
        assert short.last_byte_ns == long.last_byte_ns
    assert _told(short) == _told(long)
    assert short.answer.complete


def _told(exchange: Exchange) -> tuple[object, ...]:
    reply = exchange.reply
    counts = (reply.counted(), reply.prompt_tokens, reply.chunk_tokens, reply.reasoning_events)
    return reply.chunk_ns, reply.answer(), reply.head, reply.verdict(), reply.finish_reason, *counts


def begun() -> Exchange:
    """An answer of which something was said before: the head, the role."""
    ours = exchange()
    take(ours, HEAD + chunk(b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n'), 1)
    return ours


def test_it_is_learnt_from_the_first_token_and_taken_when_nothing_is_pending() -> None:
    ours = begun()
    assert not take(ours, chunk(event("a")), 2)
    assert take(ours, chunk(event(" longer, by far, than sixteen bytes")), 3)
    assert ours.reply.chunk_ns == [2, 3]
    assert not take(ours, chunk(event("c"))[:9], 4)
    assert not take(ours, chunk(event("c"))[9:], 5)
    assert take(ours, chunk(event("d")), 6)
    assert ours.reply.answer() == "a longer, by far, than sixteen bytescd"


def test_a_head_is_kept_although_the_text_is_not_wanted() -> None:
    request = Request(id=0, session=0, messages=(Message(role="user", content="hi"),))
    ours = Exchange(Due(request, 0, 0), dialect=DIALECT, stream=True, ended=lambda _: None)
    take(ours, HEAD, 1)
    ways = {take(ours, chunk(event(" word")), i + 2) for i in range(40)}
    assert ways == {False, True}
    assert ours.reply.head == " word" * 32
    assert len(ours.reply.chunk_ns) == 40


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"0\r\n\r\n",
        chunk(event("a") + event("b")),
        chunk(event("a")) + chunk(event("b")),
        chunk(event("a"))[:-1],
        chunk(event("")),
        chunk(event('a"')),
        chunk(event("a\\")),
        chunk(event("a\n")),
        chunk(event("é")),
        chunk(event("a", more=b',"usage":{"completion_tokens":3}')),
        chunk(b"data: [DONE]\n\n"),
        b"f" + chunk(event("a")),
    ],
)
def test_everything_else_goes_the_long_way(data: bytes) -> None:
    ours = begun()
    take(ours, chunk(event("a")), 2)
    assert ours.short_way is not None
    assert ours.short_way.take(chunk(event("b")), 3)
    assert not ours.short_way.take(data, 4)


@pytest.mark.parametrize("more", [b',"usage":{"completion_tokens":3}', b',"system_fingerprint":null,"content":"y"'])
def test_what_says_more_than_its_text_is_not_learnt(more: bytes) -> None:
    ours = begun()
    assert not any(take(ours, chunk(event("a", more=more)), i + 2) for i in range(4))
    assert len(ours.reply.chunk_ns) == 4
