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


starts = st.sampled_from([b"data: ", b"data: {", b"data:", b": ", b"event: ", b"x: "])


@st.composite
def blocks(draw: st.DrawFn) -> list[bytes]:
    found = []
    for _ in range(draw(st.integers(0, 6))):
        end = draw(line_end)
        found.append(b"".join(p + draw(text).encode() + end for p in draw(st.lists(starts, max_size=2))) + end)
    return found


streams = blocks().map(b"".join)


def test_nothing_between_the_two_bytes_of_a_line_end_is_nothing() -> None:
    assert parse(b"data: a\r", b"", b"\ndata: b\r\n\r\n") == [(None, b"a\nb")]


@given(stream=streams, cuts=st.lists(st.integers(0, 200), max_size=6))
def test_cut_anywhere_is_the_same(stream: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(c, len(stream)) for c in cuts), len(stream)]
    pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert parse(*pieces) == parse(stream)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_event_is_there_as_soon_as_its_blank_line_is(end: bytes) -> None:
    parser = SseParser()
    assert [parser.feed(b"data: %d" % i + end + end) for i in range(3)] == [[(None, b"%d" % i)] for i in range(3)]


def test_an_event_of_many_lines_costs_no_more_than_its_length() -> None:
    parser = SseParser()
    lines = [b"data: " + b"x" * 1000 + b"\n"] * 10_000
    assert not any(parser.feed(line) for line in lines)
    ((_, data),) = parser.feed(b"\n")
    assert len(data) == 1001 * 10_000 - 1
