"""Scores are pure: whatever is done to writes, no byte and no token is lost, and a mark stays with its byte."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.testing import Schedule
from withstand.testing.truth.asked import Asked, Play, altered, length
from withstand.testing.truth.asked import Body as Asking
from withstand.testing.truth.behaviours import BEHAVIOURS, style_of
from withstand.testing.truth.manners import MANNERS
from withstand.testing.truth.score import Mark, Write, cut_at, united, wrapped
from withstand.testing.truth.told import promised, score

TOKENS = 7


@st.composite
def writes(draw: st.DrawFn) -> Write:
    data = draw(st.binary(min_size=1, max_size=60))
    ends = sorted(draw(st.lists(st.integers(1, len(data)), max_size=5)))
    return Write(draw(st.integers(0, 1000)), data, tuple(Mark(end, draw(st.integers(1, 9))) for end in ends))


def marked_bytes(pieces: list[Write]) -> list[tuple[int, int]]:
    """(Bytes from the beginning, tokens) of each mark."""
    befores = itertools.accumulate((len(p.data) for p in pieces), initial=0)
    return [(before + m.end, m.tokens) for before, p in zip(befores, pieces, strict=False) for m in p.marks]


@given(writes(), st.data())
def test_cutting_keeps_bytes_and_marks(write: Write, data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(1, len(write.data)), max_size=6)))
    pieces = list(cut_at(write, places, pause_ns=3))
    assert b"".join(p.data for p in pieces) == write.data
    assert marked_bytes(pieces) == marked_bytes([write])
    assert [p.at_ns for p in pieces] == [write.at_ns + 3 * i for i in range(len(pieces))]


@given(st.lists(writes(), min_size=1, max_size=6))
def test_uniting_keeps_bytes_and_marks(parts: list[Write]) -> None:
    whole = united(parts)
    assert whole.data == b"".join(p.data for p in parts)
    assert marked_bytes([whole]) == marked_bytes(parts)
    assert whole.at_ns == parts[-1].at_ns


@given(writes(), st.binary(max_size=9), st.binary(max_size=9))
def test_wrapping_shifts_the_marks(write: Write, before: bytes, after: bytes) -> None:
    result = wrapped(write, before, after)
    assert result.data == before + write.data + after
    assert [m.end - len(before) for m in result.marks] == [m.end for m in write.marks]


def asked(*, chat: bool = True, stream: bool = True, tokens: int = TOKENS) -> Asked:
    return Asked(number=3, chat=chat, stream=stream, usage=True, tokens=tokens, schedule=Schedule(20, 5))


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_times_never_go_back_and_no_write_is_empty(name: str, *, chat: bool, stream: bool) -> None:
    told = list(score(asked(chat=chat, stream=stream), style_of(name)).writes)
    assert all(a.at_ns <= b.at_ns for a, b in itertools.pairwise(told))
    assert all(w.data for w in told)


QUICK = {"huge_tool_calls": "huge_tool_calls:300"}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("also", ["", "+bytewise", "+split", "+joined:3", "+joined:3+bytewise", "+tokens_per_event:3"])
@pytest.mark.parametrize("name", MANNERS)
def test_every_manner_tells_every_token_once(name: str, also: str, *, stream: bool) -> None:
    style = style_of(QUICK.get(name, name) + also)
    told = list(score(asked(stream=stream), style).writes)
    assert sum(m.tokens for w in told for m in w.marks) == promised(asked(stream=stream), style).tokens


@pytest.mark.parametrize(
    "name", ["error_midstream", "error_midstream_no_done", "malformed", "premature_close", "reset"]
)
@pytest.mark.parametrize("after", [0, 1, 5])
def test_a_break_comes_after_so_many_tokens(name: str, after: int) -> None:
    told = list(score(asked(), style_of(f"{name}:{after}")).writes)
    assert sum(m.tokens for w in told for m in w.marks) == after


def test_the_same_request_gets_the_same_bytes() -> None:
    for name in BEHAVIOURS:
        first, second = (list(score(asked(), style_of(f"{name}+split")).writes) for _ in range(2))
        assert first == second


def test_an_answer_that_is_no_models_plans_no_tokens() -> None:
    assert promised(asked(), style_of("http_500")).tokens is None
    assert promised(asked(), style_of("hang")).tokens is None
    assert promised(asked(), style_of("empty_200")).tokens == 0
    assert promised(asked(), style_of("plain")).tokens == TOKENS
    assert promised(asked(), style_of("no_usage_early_stop")).tokens == TOKENS // 2


@pytest.mark.parametrize(
    ("text", "fields", "wanted"),
    [
        ("", {}, (20, "stop")),
        ("", {"max_tokens": 9}, (9, "length")),
        ("", {"max_tokens": 9, "max_completion_tokens": 5}, (5, "length")),
        ("n=4", {"max_tokens": 9}, (4, "stop")),
        ("stop_after=7", {"max_tokens": 9}, (7, "stop")),
        ("stop_after=7", {"max_tokens": 5}, (5, "length")),
        ("stop_after=7", {"max_tokens": 9, "ignore_eos": True}, (9, "length")),
        ("stop_after=7", {"max_tokens": 9, "min_tokens": 8}, (8, "stop")),
        ("stop_after=7", {"max_tokens": 9, "min_tokens": 9}, (9, "length")),
    ],
)
def test_the_length_is_the_one_asked_for_unless_it_is_fixed(
    text: str, fields: dict[str, int], wanted: tuple[int, str]
) -> None:
    assert length(Asking(**fields), altered(Play(Schedule()), text)) == wanted
