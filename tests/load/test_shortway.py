"""The short way of a token changes nothing but the cost."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoken import DIALECT, HEAD, chunk, event, exchange, pieces, take, told
from withstand.load.exchange import Exchange
from withstand.load.pacing import Due
from withstand.request import Message, Request


@given(pieces(), st.lists(st.integers(0, 900), max_size=3))
def test_it_changes_nothing(chunks: list[bytes], cuts: list[int]) -> None:
    stream = HEAD + b"".join(chunks) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    edges = {0, len(stream), len(HEAD), *itertools.accumulate([len(HEAD), *map(len, chunks)]), *cuts}
    short, long = exchange(), exchange()
    for a, b in itertools.pairwise(sorted(e for e in edges if e <= len(stream))):
        long.feed(stream[a:b], a)
        take(short, stream[a:b], a)
        assert short.last_byte_ns == long.last_byte_ns
    assert told(short) == told(long)
    assert short.answer.complete


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
