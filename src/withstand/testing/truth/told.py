"""From a request and a style to the score of the answer: events, spelled, laid, framed, ended."""

from collections.abc import Iterator
from itertools import islice

import msgspec

from withstand.testing.truth import framed
from withstand.testing.truth.asked import Asked
from withstand.testing.truth.framed import Head
from withstand.testing.truth.schedule import offsets_ns
from withstand.testing.truth.score import End, Mark, Pass, Score, Write
from withstand.testing.truth.style import Role, Style
from withstand.testing.truth.voice import Voice

_NS_PER_MS = 1_000_000


def score(asked: Asked, style: Style) -> Score:
    """The whole answer."""
    if style.silent:
        return Score(None, iter(()), style.end)
    head, body, frame = _message(asked, style)
    writes = (style.frame or frame)(_not_before(body, head.at_ns), head)
    if style.before:
        writes = _preceded(writes, style.before)
    writes = laid_out(writes, asked, style.wire)
    end = End.CLOSE if style.end is End.KEEP and not asked.keep_alive else style.end
    return Score(head.status, writes, end, style.idle_ms)


class Promise(msgspec.Struct, frozen=True):
    """What an answer comes to if it is not broken off."""

    tokens: int | None = None
    """None = it is no model's answer."""
    usage_tokens: int | None = None
    """What usage claims at the end; None = it is not told."""
    finish_reason: str | None = None
    streamed: bool = False


def promised(asked: Asked, style: Style) -> Promise:
    """What will have been said by the answer's end."""
    if style.silent or style.refusal:
        return Promise()
    voice = Voice(asked, style)
    return Promise(voice.tokens, voice.claim, voice.finish_reason, asked.stream and not style.whole)


def _message(asked: Asked, style: Style) -> tuple[Head, Iterator[Write], framed.Frame]:
    """(Head, body, how such a body is framed by default)."""
    status, kind, frame = 200, "application/json", framed.at_once
    headers: tuple[str, ...] = (f"X-Truth-Number: {asked.number}",)
    if style.refusal:
        status, kind = style.refusal.status, style.refusal.content_type
        headers += style.refusal.headers
        body = iter([Write(0, style.refusal.body)])
    elif style.whole or not asked.stream:
        body = whole(asked, style)
    else:
        kind, frame = "text/event-stream; charset=utf-8", framed.chunked
        body = laid_out(stream(asked, style), asked, style.body)
    head = Head(status, kind, headers, asked.keep_alive, round(style.head_ms * _NS_PER_MS))
    return head, body, frame


def laid_out(writes: Iterator[Write], asked: Asked, passes: tuple[Pass, ...]) -> Iterator[Write]:
    """One pass after another."""
    for lay in passes:
        writes = lay(writes, asked)
    return writes


def whole(asked: Asked, style: Style) -> Iterator[Write]:
    """One JSON body when the last token is due: its output is a single event."""
    voice = Voice(asked, style)
    at_ns = max(_times(asked, style, voice.tokens), default=_ttft_ns(asked))
    body = voice.whole()
    yield Write(at_ns, body, (Mark(len(body), voice.tokens), Mark(len(body), 0)) if voice.tokens else ())


def stream(asked: Asked, style: Style) -> Iterator[Write]:
    """The events, one a write."""
    voice = Voice(asked, style)
    at_ns = next(_times(asked, style, voice.tokens), _ttft_ns(asked))
    if style.empty_first:
        yield _event(0, voice.empty(), style)
    if asked.chat and style.role is not Role.NONE:
        yield _event(0 if style.role is Role.EARLY else at_ns, voice.role(), style)
    limit = _tokens_told(style, voice.tokens)
    times = _times(asked, style, voice.tokens)
    for start in range(0, limit, style.per_event):
        group = list(islice(times, min(style.per_event, limit - start)))
        at_ns = group[0]
        yield _event(at_ns, voice.said(start, len(group)), style, len(group))
    if style.broken:
        at_ns = next(times, at_ns)
        if style.broken.payload:
            yield _event(at_ns, style.broken.payload, style)
    else:
        yield from _closing(at_ns, voice, style)
    if style.done:
        yield _event(at_ns, b"[DONE]", style)


def _closing(at_ns: int, voice: Voice, style: Style) -> Iterator[Write]:
    """What follows the last token at once."""
    if style.finish_apart or not voice.tokens:
        yield _event(at_ns, voice.finish(), style)
    if usage := voice.usage():
        yield _event(at_ns, usage, style)


def _tokens_told(style: Style, tokens: int) -> int:
    if not style.broken:
        return tokens
    return tokens // 2 if style.broken.after is None else min(tokens, style.broken.after)


def _event(at_ns: int, payload: bytes, style: Style, tokens: int = 0) -> Write:
    data, known = style.spell(payload)
    return Write(at_ns, data, (Mark(known, tokens), Mark(len(data), 0)) if tokens else ())


def _ttft_ns(asked: Asked) -> int:
    return round(asked.schedule.ttft_ms * _NS_PER_MS)


def _times(asked: Asked, style: Style, tokens: int) -> Iterator[int]:
    """When each token is due: the schedule, with the style's one long gap in the middle."""
    stall_ns = round(style.stall_ms * _NS_PER_MS)
    for index, at_ns in enumerate(offsets_ns(asked.schedule, tokens, asked.number)):
        yield at_ns + stall_ns if index >= (tokens + 1) // 2 else at_ns


def _not_before(writes: Iterator[Write], floor_ns: int) -> Iterator[Write]:
    """No body before its head."""
    if not floor_ns:
        return writes
    return (Write(max(write.at_ns, floor_ns), write.data, write.marks) for write in writes)


def _preceded(writes: Iterator[Write], before: bytes) -> Iterator[Write]:
    yield Write(0, before)
    yield from writes
