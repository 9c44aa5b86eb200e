"""What servers say of a streamed answer, chunk by chunk, and the exchange that hears it."""

import itertools

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


def told(exchange: Exchange) -> tuple[object, ...]:
    reply = exchange.reply
    counts = (reply.counted(), reply.prompt_tokens, reply.chunk_tokens, reply.reasoning_events)
    return reply.chunk_ns, reply.answer(), reply.head, reply.verdict(), reply.finish_reason, *counts
