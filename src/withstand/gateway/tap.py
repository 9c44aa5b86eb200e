"""What is read of an answer that goes by: its last pieces, once it is over. Pure."""

import re
from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

PIECES = 4
"""The usage, ``[DONE]`` and the end of the chunks may each come in a piece of their own."""
_PLAIN = re.compile(
    rb'"usage":\s?\{"prompt_tokens":\s?(\d{1,12}),\s?(?:"total_tokens":\s?\d{1,12},\s?)?'
    rb'"completion_tokens":\s?(\d{1,12})(?:,\s?"total_tokens":\s?\d{1,12})?(?:,\s?"prompt_tokens_details":\s?null)?\}'
)
_USAGE = re.compile(rb'"usage"\s*:\s*\{')
_VALUE = re.compile(rb"\s*:\s*(\d{1,12})\b")
_USAGES_MAX = 8
"""With a prompt or not; a stream that tells usage in all of its events tells all of it."""
_EVENT_ENDS = (b"\n\n\r\n", b"\r\n\r\n\r\n")


class Said(Struct, frozen=True):
    """What an engine says it has read and made; ``None`` where it does not say. ``cached`` is part of ``prompt``."""

    prompt: int | None = None
    cached: int | None = None
    completion: int | None = None


_Count = Annotated[int, Meta(ge=0, lt=10**12)] | None


class _Details(Struct, frozen=True):
    cached_tokens: _Count = None


class _Usage(Struct, frozen=True):
    """As engines write it, in whichever dialect."""

    prompt_tokens: _Count = None
    completion_tokens: _Count = None
    input_tokens: _Count = None
    output_tokens: _Count = None
    cached_tokens: _Count = None
    cache_read_input_tokens: _Count = None
    cache_creation_input_tokens: _Count = None
    prompt_tokens_details: _Details | None = None
    input_tokens_details: _Details | None = None

    @property
    def cached(self) -> int | None:
        """Of the prompt; who counts it at all mostly does so in the details."""
        details = self.prompt_tokens_details or self.input_tokens_details
        return self.cached_tokens if details is None else details.cached_tokens


_COUNTS = {name: b'"%b"' % name.encode() for name in _Usage.__struct_fields__ if name.endswith("_tokens")}
_usage = msgspec.json.Decoder(_Usage).decode


def said(pieces: Iterable[bytes], first: bytes = b"") -> Said:
    """Of the last pieces, and of the first bytes what they do not say: Anthropic's streams begin with the prompt."""
    text = b"".join(pieces)
    plain = _PLAIN.match(text, text.rfind(b'"usage"'))
    if plain is not None and text.find(b'_tokens"', plain.end()) < 0:
        return Said(int(plain[1]), None, int(plain[2]))
    last = _odd(text)
    if last.prompt is not None or not first:
        return last
    begun = _odd(first)
    completion = begun.completion if last.completion is None else last.completion
    return Said(begun.prompt, begun.cached, completion)


def _odd(text: bytes) -> Said:
    """Of the last usage; what that does not say, of those before, as far as it is looked for."""
    completion = None
    for _ in range(_USAGES_MAX):
        if text.rfind(b'_tokens"') < 0:
            break
        end = len(text)
        while (start := text.rfind(b'"usage"', 0, end)) >= 0 and _USAGE.match(text, start) is None:
            end = start  # null, as all but a stream's last events may have it
        last = _said(_found(text) if start < 0 else _read(text[start:]))
        completion = last.completion if completion is None else completion
        if last.prompt is not None or start < 0:
            return Said(last.prompt, last.cached, completion)
        text = text[:start]
    return Said(None, None, completion)


def _said(usage: _Usage) -> Said:
    """Anthropic counts what it took from the cache, and put there, beside the prompt."""
    if usage.prompt_tokens is not None:
        return Said(usage.prompt_tokens, usage.cached, usage.completion_tokens)
    prompt, read = usage.input_tokens, usage.cache_read_input_tokens
    if prompt is not None:
        prompt += (read or 0) + (usage.cache_creation_input_tokens or 0)
    completion = usage.output_tokens if usage.completion_tokens is None else usage.completion_tokens
    return Said(prompt, usage.cached if read is None else read, completion)


def _read(text: bytes) -> _Usage:
    """Of text that begins with a usage: the object up to its last count, closed there; else whatever can be found."""
    end = text.find(b"}", text.rfind(b'_tokens"')) + 1
    usage = text[text.index(b"{") : end]
    still_open = usage.count(b"{") - usage.count(b"}")
    try:
        read = _usage(usage + b"}" * still_open)
    except (msgspec.DecodeError, UnicodeDecodeError):  # cut off, or with something else behind it
        return _found(text)
    where = usage.count(b'"cached_tokens"')  # also where no dialect has it
    return read if where == (read.cached is not None) else _found(text)


def _found(text: bytes) -> _Usage:
    """Of each count the last, wherever it stands."""
    return msgspec.convert({name: _count(text, quoted) for name, quoted in _COUNTS.items()}, _Usage)


def _count(text: bytes, name: bytes) -> int | None:
    """The last of that name."""
    place = text.rfind(name)
    found = _VALUE.match(text, place + len(name)) if place >= 0 else None
    return int(found[1]) if found else None


_ERROR = re.compile(
    rb'(?:^|\n)(?:event: ?error\b|data: ?\{"(?:error"|object": ?"error"|type": ?"(?:error|response\.failed)"))'
)


def fails(pieces: Iterable[bytes]) -> bool:
    """Whether a stream of events has an error among its last ones, as engines of each dialect write it.

    A line's end cannot stand within a JSON string, so no text that a model makes is taken for one.
    """
    text = b"".join(pieces)
    return b'"error"' in text and _ERROR.search(text) is not None


def events(text: bytes) -> int:
    """Of a stream; where one is cut apart by the pieces' ends, one less."""
    return text.count(b"\ndata:")


def between_events(piece: bytes) -> bool:
    """Whether a chunked stream of events may go on after this piece: its event has ended, and so has its chunk."""
    return piece.endswith(_EVENT_ENDS)
