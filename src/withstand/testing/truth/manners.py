"""Right answers in every shape that a right client must take: nothing here is an error."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from withstand.metrics.doubts import DoubtKind
from withstand.testing.truth import framed, laid, spelled
from withstand.testing.truth.behaviour import Behaviour, body, fixed, whole_number, wire
from withstand.testing.truth.score import End
from withstand.testing.truth.style import Role, Style, Thinking, Usage

_SAME = "the truth log's numbers"


def tokens_per_event(style: Style, number: float | None) -> Style:
    """Several tokens in an event, due with the first of them."""
    return replace(style, per_event=max(1, int(number or 1)))


def joined(style: Style, number: float | None) -> Style:
    """Several events in a write."""
    return replace(style, body=(*style.body, laid.joined(max(1, int(number or 1)))))


def split(style: Style, number: float | None) -> Style:
    """Every write in two."""
    return replace(style, wire=(*style.wire, laid.split(number or 0)))


def multibyte(style: Style, number: float | None) -> Style:
    """Words of long characters, and U+2028, which is no line end for an event stream."""
    return replace(style, word=foreign, wire=(*style.wire, laid.mid_character(number or 0)))


def reasoning(style: Style, number: float | None) -> Style:
    """As vLLM names it today."""
    return replace(style, thinking=Thinking("reasoning", whole_number(number)))


def reasoning_content(style: Style, number: float | None) -> Style:
    """As DeepSeek, SGLang and older vLLM name it."""
    return replace(style, thinking=Thinking("reasoning_content", whole_number(number)))


def tool_calls(style: Style, number: float | None) -> Style:
    """The arguments of a call, piece by piece."""
    return replace(style, tool_chars=whole_number(number))


def logprobs(style: Style, number: float | None) -> Style:
    """Every token with its probability, and with others."""
    return replace(style, logprobs=int(number or 0))


def usage_inflated(style: Style, number: float | None) -> Style:
    """The counts are told, and are wrong."""
    return replace(style, claim_factor=number or 0.0)


def two_choices(style: Style, number: float | None) -> Style:
    """Several answers to one request."""
    return replace(style, choices=max(1, int(number or 1)))


def slow_headers(style: Style, number: float | None) -> Style:
    """The head comes late, and what was due before comes with it."""
    return replace(style, head_ms=number or 0.0)


def stall(style: Style, number: float | None) -> Style:
    """One long gap."""
    return replace(style, stall_ms=number or 0.0)


def close_idle(style: Style, number: float | None) -> Style:
    """The kept connection is closed when it has been idle for a while."""
    return replace(style, idle_ms=number or 0.0)


def foreign(index: int) -> str:
    """A word of one, two, three and four bytes a character, with a U+2028 inside."""
    return f"{' ' if index else ''}é漢\u2028🙂{index}"


MANNERS: Final[Mapping[str, Behaviour]] = {
    "plain": Behaviour(
        fixed(),
        "as vLLM: role chunk just before the first token, finish reason on the last one, usage if asked for, `[DONE]`",
        _SAME,
    ),
    "role_early": Behaviour(
        fixed(role=Role.EARLY), "the role chunk comes with the headers", "the role chunk is no first token"
    ),
    "role_none": Behaviour(fixed(role=Role.NONE), "no role chunk at all", _SAME),
    "finish_separate": Behaviour(
        fixed(finish_apart=True), "the finish reason has a chunk of its own", "that chunk is no token"
    ),
    "no_usage": Behaviour(
        fixed(usage=Usage.NEVER),
        "the counts are never told",
        "tokens counted otherwise, and labelled as such",
        doubt=DoubtKind.TOKENS_ESTIMATED,
    ),
    "no_usage_early_stop": Behaviour(
        fixed(usage=Usage.NEVER, early_stop=True),
        "half of the tokens asked for, then `stop`; the counts are never told",
        "the tokens that came, not the length asked for",
        doubt=DoubtKind.TOKENS_ESTIMATED,
    ),
    "usage_inflated": Behaviour(
        usage_inflated,
        "usage claims several times the tokens that are said",
        "the claim, and that it does not fit what came",
        number="times as many",
        default=5,
        doubt=DoubtKind.CLAIMED_NOT_COUNTED,
    ),
    "usage_in_every_chunk": Behaviour(
        fixed(usage=Usage.ALWAYS),
        "every chunk tells the count so far (`continuous_usage_stats`)",
        "the tokens of each event; the last count, not their sum",
    ),
    "tokens_per_event": Behaviour(
        tokens_per_event,
        "several tokens in one event, written when the first of them is due",
        "tokens, not events, counted",
        number="tokens in an event",
        default=4,
        doubt=DoubtKind.CLAIMED_NOT_COUNTED,
    ),
    "joined": Behaviour(
        joined,
        "several events in one write, when the last of them is due",
        "as many events, with shared stamps",
        number="events in a write",
        default=4,
        doubt=DoubtKind.SHARED_READS,
    ),
    "split": Behaviour(
        split,
        "every write in two, cut at any byte",
        _SAME,
        number="µs between the halves",
        default=500,
    ),
    "bytewise": Behaviour(wire(laid.bytewise), "one byte a write", _SAME),
    "crlf": Behaviour(fixed(spell=spelled.crlf), "lines end with CR LF", _SAME),
    "comments": Behaviour(
        body(laid.comments), "a comment (`: keep-alive`) half-way before every event", "a comment is no first token"
    ),
    "no_space": Behaviour(fixed(spell=spelled.no_space), "`data:{…}` without the space", _SAME),
    "more_fields": Behaviour(
        fixed(spell=spelled.more_fields), "`event`, `id`, `retry` and an unknown field beside `data`", _SAME
    ),
    "multi_line_data": Behaviour(fixed(spell=spelled.multi_line), "the JSON over two `data:` lines", _SAME),
    "reasoning": Behaviour(
        reasoning,
        "the first tokens stand under `reasoning`",
        "the first of them is the first token; all of them count",
        number="tokens of it, else half",
    ),
    "reasoning_content": Behaviour(
        reasoning_content,
        "the first tokens stand under `reasoning_content`",
        "the first of them is the first token; all of them count",
        number="tokens of it, else half",
    ),
    "tool_calls": Behaviour(
        tool_calls,
        "the answer is the arguments of a tool call",
        "its pieces are tokens; finish reason `tool_calls`",
        number="characters to a token",
        default=8,
    ),
    "huge_tool_calls": Behaviour(
        tool_calls,
        "as `tool_calls`, with pieces larger than any read",
        "the same",
        number="characters to a token",
        default=100_000,
    ),
    "two_choices": Behaviour(
        two_choices,
        "the tokens alternate between two choices (`n` = 2)",
        "the tokens of both",
        number="choices",
        default=2,
    ),
    "logprobs": Behaviour(
        logprobs,
        "every token brings its probability and those of others",
        _SAME,
        number="others",
        default=20,
    ),
    "empty_choices": Behaviour(
        fixed(empty_first=True), "a chunk with an empty list of choices comes with the headers", "it is no first token"
    ),
    "multibyte": Behaviour(
        multibyte,
        "characters of two to four bytes and U+2028, cut inside",
        "the text whole; U+2028 ends no line",
        number="µs between the pieces",
        default=200,
    ),
    "slow_headers": Behaviour(
        slow_headers, "the head comes late, and what was due before with it", _SAME, number="ms", default=200
    ),
    "stall": Behaviour(stall, "one long gap in the middle", "one long gap", number="ms more", default=500),
    "no_stream": Behaviour(
        fixed(whole=True),
        "one JSON body although a stream was asked for",
        "no TTFT and no ITL, and that it was not streamed",
    ),
    "http10": Behaviour(
        fixed(frame=framed.until_close, end=End.CLOSE), "HTTP/1.0: the body ends with the connection", _SAME
    ),
    "content_length": Behaviour(fixed(frame=framed.with_length), "a stream with its length told beforehand", _SAME),
    "chunk_extensions": Behaviour(fixed(frame=framed.chunk_extensions), "size lines of chunks say more", _SAME),
    "trailers": Behaviour(fixed(frame=framed.trailers), "headers behind the last chunk", _SAME),
    "gzip": Behaviour(fixed(frame=framed.gzipped), "compressed although not asked for, flushed at every event", _SAME),
    "status_100": Behaviour(
        fixed(before=b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </>; rel=preload\r\n\r\n"),
        "interim answers (100, 103) before the head",
        _SAME,
    ),
    "close_after_response": Behaviour(
        fixed(end=End.CLOSE),
        "the connection is closed after the answer although keep-alive was promised",
        "no failed request: the next one is sent again over a new connection",
    ),
    "close_idle": Behaviour(
        close_idle,
        "a kept connection is closed when idle for so long",
        "no failed request",
        number="ms",
        default=50,
    ),
}
