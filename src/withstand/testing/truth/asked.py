"""What a request asks for, read from its body and from the ways to choose a pace and a behaviour for it alone.

Tokens here are runs of characters other than ASCII white space: the same rule counts a prompt, answers ``/tokenize``
and makes the words of an answer, so that all the counts agree.
"""

import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

from withstand.errors import UsageError
from withstand.testing.truth.schedule import Schedule


class Play(msgspec.Struct, frozen=True):
    """How requests are to be answered. ``tokens`` fixes the length, whatever the request says."""

    schedule: Schedule
    behaviour: str | None = None
    tokens: int | None = None


class StreamOptions(msgspec.Struct, frozen=True):
    """As OpenAI and vLLM have them."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class Body(msgspec.Struct, frozen=True):
    """The fields that change an answer; all others are let be."""

    model: str | None = None
    prompt: Any = None
    messages: Any = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    min_tokens: int | None = None
    ignore_eos: bool | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request, as far as its answer depends on it."""

    number: int
    """Order of arrival, from 0."""
    chat: bool
    stream: bool
    usage: bool = False
    usage_always: bool = False
    model: str = "truth"
    prompt_tokens: int = 0
    cached_tokens: int | None = None
    """None = usage says nothing of it."""
    tokens: int
    finish_reason: str = "length"
    schedule: Schedule
    keep_alive: bool = True


def beside(play: Play, others: int, batch: float) -> Play:
    """As ``others`` who are served at the same time slow it down, each by a share ``batch`` of the ITL."""
    if not others or not batch:
        return play
    itl_ms = play.schedule.itl_ms * (1 + batch * others)
    return msgspec.structs.replace(play, schedule=msgspec.structs.replace(play.schedule, itl_ms=itl_ms))


_NUMBERS: dict[str, tuple[str, type[int] | type[float]]] = {
    "ttft": ("ttft_ms", float),
    "itl": ("itl_ms", float),
    "stop_after": ("stop_after", int),
    "seed": ("seed", int),
}
_TEXTS = {"jitter": "jitter", "ttft_jitter": "ttft_jitter"}
_KEYS = ", ".join(sorted([*_NUMBERS, *_TEXTS, "n", "behaviour"]))


def altered(play: Play, text: str) -> Play:
    """``play`` with the changes of ``ttft=30,itl=10,n=64,behaviour=crlf``.

    Raises:
        UsageError: a key or value that cannot be understood.
    """
    changes: dict[str, Any] = {}
    for pair in filter(None, text.replace(";", ",").split(",")):
        key, _, value = pair.strip().partition("=")
        changes |= _change(key, value)
    behaviour = changes.pop("behaviour", play.behaviour)
    tokens = changes.pop("n", play.tokens)
    return Play(msgspec.structs.replace(play.schedule, **changes), behaviour, tokens)


def _change(key: str, value: str) -> dict[str, Any]:
    try:
        if key in _NUMBERS:
            field, kind = _NUMBERS[key]
            return {field: kind(value)}
        if key == "n":
            return {"n": max(1, int(value))}
    except ValueError:
        raise UsageError(f"truth: {key}={value!r} is no number; write it like {key}=30.") from None
    if key in _TEXTS or key == "behaviour":
        return {_TEXTS.get(key, key): value}
    raise UsageError(f"truth: {key!r} is unknown; choose among {_KEYS}.")


def length(body: Body, play: Play) -> tuple[int, str]:
    """(Tokens of the answer, its finish reason).

    A fixed length wins; else the one asked for; else the schedule's. An early stop yields to ``ignore_eos``
    and to ``min_tokens``, as in an engine.
    """
    asked = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
    limit = play.tokens or asked or play.schedule.tokens
    stop_after = play.schedule.stop_after
    if stop_after is None or body.ignore_eos:
        return limit, "stop" if asked is None or limit < asked else "length"
    tokens = min(limit, max(stop_after, body.min_tokens or 0))
    return tokens, "stop" if tokens < limit or asked is None else "length"


def words(text: str) -> list[bytes]:
    """The tokens of a text."""
    return text.encode().split()


def token_ids(text: str) -> list[int]:
    """A number for each token, the same for the same word."""
    return [zlib.crc32(word) & 0xFFFF for word in words(text)]


def texts(content: Any) -> Iterator[str]:
    """All the text in a prompt, a list of prompts, messages, or parts of a message."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict):
        yield from texts(content.get("content"))
        yield from texts(content.get("text"))
    elif isinstance(content, list):
        for item in content:
            yield from texts(item)


def prompt_tokens(body: Body) -> int:
    """Words of the prompt and the messages; ids of a prompt that comes as token ids."""
    written = sum(len(words(text)) for text in texts([body.prompt, body.messages]))
    return written + _ids(body.prompt)


def _ids(prompt: Any) -> int:
    if not isinstance(prompt, list):
        return 0
    return sum(_ids(item) if isinstance(item, list) else isinstance(item, int) for item in prompt)
