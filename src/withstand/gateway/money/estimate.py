"""What an answer may cost before there is one, and the one field that makes a stream tell: pure.

The estimate is made to be cheap and never far too low: the body's bytes / 4 for the prompt, so much for each picture or
sound in it, whose bytes say little, and what the client allows for the answer. It is only held while the request is
under way; what is charged is what the engine says.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

ASSUMED_OUTPUT_TOKENS = 256
"""Held for an answer that is given no limit."""
_BYTES_A_TOKEN = 4
MEDIA_TOKENS = 1000
"""For each picture or sound, whatever its size. OpenAI counts 85 to 1105 for a picture of up to 2048 x 2048
(platform.openai.com, "Images and vision"), Anthropic at most about 1600 (docs.anthropic.com, "Vision")."""
_MEDIA = (b'"image_url"', b'"input_image"', b'"input_audio"', b'"audio_url"', b'"video_url"', b'"base64"')
"""Names that stand in a part of a message that is a picture or a sound: mostly two of them, its type and its key."""
_DATA_URL = b'"data:'
_CONTENT = (_DATA_URL, b'"data"')
_KEYS_STRING = re.compile(rb'\s*:\s*"')
_CONTENT_BYTES_MIN = 64
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_\\"
"""With the backslash that some put before a JSON string's slashes."""
_OUTPUT_TOKENS_MAX = 1 << 32
_NO_OUTPUT = frozenset(("/v1/embeddings", "/v1/rerank", "/rerank", "/v1/score"))
_ASKING = frozenset(("/v1/chat/completions", "/v1/completions"))
"""The other routes' streams tell their usage unasked."""


class Wanted(Struct, frozen=True):
    """Fields that say how much; of any type, for it is the engine that refuses wrong ones."""

    stream: Any = None
    max_tokens: Any = None
    max_completion_tokens: Any = None
    max_output_tokens: Any = None
    n: Any = None
    stream_options: Any = None


_wanted = msgspec.json.Decoder(Wanted).decode
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def wanted(body: bytes) -> Wanted:
    """Of a body that is known to be a JSON object."""
    try:
        return _wanted(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Wanted()  # the engine will say what is wrong with it


def prompt_tokens(body: bytes) -> int:
    """About. Pictures and sounds that are in the body itself are not counted by their bytes."""
    parts = sum(body.count(name) for name in _MEDIA)
    if not parts:
        return len(body) // _BYTES_A_TOKEN
    sizes = [size for mark in _CONTENT for size in _sizes(body, mark)]
    return (len(body) - sum(sizes)) // _BYTES_A_TOKEN + MEDIA_TOKENS * max(len(sizes), (parts + 1) // 2)


def _sizes(body: bytes, mark: bytes) -> Iterator[int]:
    """Of JSON's strings of base64 behind this mark, which is a key or a string's beginning; others say their size."""
    at = body.find(mark)
    while at >= 0:
        start = _start(body, at, mark)
        end = body.find(b'"', start) if start else -1
        content = body[start:end] if end > start else b""
        content = content.partition(b";base64,")[2] if content.startswith(b"data:") else content
        if len(content) >= _CONTENT_BYTES_MIN and not content.translate(None, _BASE64):
            yield len(content)
        at = body.find(mark, max(end, at + 1))


def _start(body: bytes, at: int, mark: bytes) -> int:
    """Where the string begins; 0 = it is none."""
    if mark == _DATA_URL:
        return at + 1
    found = _KEYS_STRING.match(body, at + len(mark))
    return found.end() if found else 0


def output_tokens(want: Wanted, path: str) -> int:
    """At most, where the client says so."""
    if path in _NO_OUTPUT:
        return 0
    limit = next(_limits(want), ASSUMED_OUTPUT_TOKENS)
    return min(limit * (want.n if _is_count(want.n) else 1), _OUTPUT_TOKENS_MAX)


def says_output(want: Wanted) -> bool:
    """Whether the client says how long the answer may be."""
    return next(_limits(want), None) is not None


def _limits(want: Wanted) -> Iterator[int]:
    given = (want.max_completion_tokens, want.max_tokens, want.max_output_tokens)
    return (n for n in given if _is_count(n))


def _is_count(said: Any) -> bool:
    return isinstance(said, int) and not isinstance(said, bool) and said > 0


def asking(body: bytes, want: Wanted, path: str) -> bytes:
    """The same body, with ``stream_options.include_usage`` where a stream would not tell its usage."""
    options = want.stream_options
    if path not in _ASKING or want.stream is not True or not (options is None or isinstance(options, dict)):
        return body
    if options is not None and options.get("include_usage") is True:
        return body
    try:
        tree = _fields(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body
    if "stream_options" not in tree:
        start = body.index(b"{") + 1
        return b'%b"stream_options":{"include_usage":true},%b' % (body[:start], body[start:])
    tree["stream_options"] = msgspec.Raw(msgspec.json.encode({**(options or {}), "include_usage": True}))
    return msgspec.json.encode(tree)
