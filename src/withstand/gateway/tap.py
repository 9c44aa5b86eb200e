"""What is read of an answer that goes by: its last pieces, once it is over. Pure."""

import re
from collections.abc import Iterable

from msgspec import Struct

PIECES = 4
"""The usage, ``[DONE]`` and the end of the chunks may each come in a piece of their own."""
_USAGE = re.compile(rb'"usage"\s*:\s*\{')
_COMPLETION = re.compile(rb'"(?:completion|output)_tokens"\s*:\s*(\d{1,12})\b')
_PROMPT = re.compile(rb'"(?:prompt|input)_tokens"\s*:\s*(\d{1,12})\b')
_CACHED = re.compile(rb'"cached_tokens"\s*:\s*(\d{1,12})\b')
_CACHE_READ = re.compile(rb'"cache_read_input_tokens"\s*:\s*(\d{1,12})\b')
_CACHE_MADE = re.compile(rb'"cache_creation_input_tokens"\s*:\s*(\d{1,12})\b')
_EVENT_ENDS = (b"\n\n\r\n", b"\r\n\r\n\r\n")


class Said(Struct, frozen=True):
    """What an engine says it has read and made; ``None`` where it does not say. ``cached`` is part of ``prompt``."""

    prompt: int | None = None
    cached: int | None = None
    completion: int | None = None


def said(pieces: Iterable[bytes], first: bytes = b"") -> Said:
    """Of the last pieces, and of the first bytes what they do not say: Anthropic's streams begin with the prompt."""
    last = _usage_in(b"".join(pieces))
    if last.prompt is not None or not first:
        return last
    begun = _usage_in(first)
    completion = begun.completion if last.completion is None else last.completion
    return Said(begun.prompt, begun.cached, completion)


def _usage_in(text: bytes) -> Said:
    """Of the last usage. Anthropic counts what it took from the cache, and put there, beside the prompt."""
    usage = [found.end() for found in _USAGE.finditer(text)]
    told = text[usage[-1] :] if usage else text
    prompt, read, made = _last(_PROMPT, told), _last(_CACHE_READ, told), _last(_CACHE_MADE, told)
    if prompt is None and len(usage) > 1:
        before = _usage_in(text[: usage[-1] - 1])
        return Said(before.prompt, before.cached, _last(_COMPLETION, told))
    if prompt is not None and (read is not None or made is not None):
        prompt += (read or 0) + (made or 0)
    return Said(prompt, _last(_CACHED, told) if read is None else read, _last(_COMPLETION, told))


def _last(pattern: re.Pattern[bytes], text: bytes) -> int | None:
    found = pattern.findall(text)
    return int(found[-1]) if found else None


def events(text: bytes) -> int:
    """Of a stream; where one is cut apart by the pieces' ends, one less."""
    return text.count(b"\ndata:")


def between_events(piece: bytes) -> bool:
    """Whether a chunked stream of events may go on after this piece: its event has ended, and so has its chunk."""
    return piece.endswith(_EVENT_ENDS)
