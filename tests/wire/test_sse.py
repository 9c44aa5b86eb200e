"""Events come out the same, wherever the bytes are cut."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.wire.sse import SseParser


def parse(*pieces: bytes) -> list[tuple[bytes | None, bytes]]:
    parser = SseParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.close()


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [(None, b"a"), (None, b"b")]),
        (b"data:a\n\n", [(None, b"a")]),
        (b"data:  a\n\n", [(None, b" a")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [(None, b"a"), (None, b"b")]),
        (b"data: a\r\rdata: b\r\r", [(None, b"a"), (None, b"b")]),
        (b": keep-alive\n\ndata: a\n\n", [(None, b"a")]),
        (b": note\ndata: a\n\n", [(None, b"a")]),
        (b'data: {"x":\ndata: 1}\n\n', [(None, b'{"x":\n1}')]),
        (b"event: error\ndata: bad\n\n", [(b"error", b"bad")]),
        (b"id: 7\nretry: 10\n\ndata: a\n\n", [(None, b"a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [(None, b"a")]),
        (b"data: [DONE]\n", [(None, b"[DONE]")]),
        (b"data\n\n", [(None, b"")]),
        (b"\n\n\n\ndata: a\n\n\n\n", [(None, b"a")]),
        (b"", []),
    ],
)
def test_whatwg_rules(stream: bytes, expected: list[tuple[bytes | None, bytes]]) -> None:
    assert parse(stream) == expected
    assert parse(*(stream[i : i + 1] for i in range(len(stream)))) == expected


line_end = st.sampled_from([b"\n", b"\r\n", b"\r"])
text = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=8)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    end = draw(line_end)
    blocks = []
    for _ in range(draw(st.integers(0, 5))):
        lines = draw(st.lists(st.sampled_from([b"data: ", b"data:", b": ", b"event: ", b"x: "]), max_size=3))
        blocks.append(b"".join(p + draw(text).encode() + end for p in lines) + end)
    return b"".join(blocks)


@given(stream=streams(), cuts=st.lists(st.integers(0, 200), max_size=6))
def test_cut_anywhere_is_the_same(stream: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(c, len(stream)) for c in cuts), len(stream)]
    pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert parse(*pieces) == parse(stream)
