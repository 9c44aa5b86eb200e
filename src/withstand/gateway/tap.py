"""What is read of an answer that goes by: its last pieces, once it is over. Pure."""

import re
from collections.abc import Iterable

from msgspec import Struct

PIECES = 4
"""The usage, ``[DONE]`` and the end of the chunks may each come in a piece of their own."""
_USAGE = re.compile(rb'"usage"\s*:\s*\{')
_VALUE = re.compile(rb"\s*:\s*(\d{1,12})\b")
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
    """Of the last usage; where that has no prompt, of the one before."""
    if text.rfind(b'_tokens"') < 0:
        return Said()
    end = len(text)
    while (start := text.rfind(b'"usage"', 0, end)) >= 0 and _USAGE.match(text, start) is None:
        end = start  # null, as all but a stream's last events may have it
    last = _said(text[max(start, 0) :])
    if last.prompt is not None or start < 0:
        return last
    before = _usage_in(text[:start])
    return before if last.completion is None else Said(before.prompt, before.cached, last.completion)


def _said(usage: bytes) -> Said:
    """Anthropic counts what it took from the cache, and put there, beside the prompt."""
    prompt, completion = _count(usage, b'"prompt_tokens"'), _count(usage, b'"completion_tokens"')
    if prompt is not None:
        return Said(prompt, _count(usage, b'"cached_tokens"'), completion)
    prompt, read = _count(usage, b'"input_tokens"'), _count(usage, b'"cache_read_input_tokens"')
    if prompt is not None:
        prompt += (read or 0) + (_count(usage, b'"cache_creation_input_tokens"') or 0)
    cached = _count(usage, b'"cached_tokens"') if read is None else read
    return Said(prompt, cached, _count(usage, b'"output_tokens"') if completion is None else completion)


def _count(text: bytes, name: bytes) -> int | None:
    """The last of that name."""
    place = text.rfind(name)
    found = _VALUE.match(text, place + len(name)) if place >= 0 else None
    return int(found[1]) if found else None


def events(text: bytes) -> int:
    """Of a stream; where one is cut apart by the pieces' ends, one less."""
    return text.count(b"\ndata:")


def between_events(piece: bytes) -> bool:
    """Whether a chunked stream of events may go on after this piece: its event has ended, and so has its chunk."""
    return piece.endswith(_EVENT_ENDS)
