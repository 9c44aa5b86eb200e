"""What an answer may cost before there is one, and the one field that makes a stream tell: pure.

The estimate is made to be cheap and never far too low: the body's bytes / 4 for the prompt, and what the client allows
for the answer. It is only held while the request is under way; what is charged is what the engine says.
"""

from typing import Any

import msgspec
from msgspec import Struct

ASSUMED_OUTPUT_TOKENS = 256
"""Held for an answer that is given no limit."""
_BYTES_A_TOKEN = 4
_OUTPUT_TOKENS_MAX = 1 << 32
_NO_OUTPUT = frozenset(("/v1/embeddings", "/v1/rerank", "/v1/score", "/tokenize", "/detokenize"))
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
    """About."""
    return len(body) // _BYTES_A_TOKEN


def output_tokens(want: Wanted, path: str) -> int:
    """At most, where the client says so."""
    if path in _NO_OUTPUT:
        return 0
    given = (want.max_completion_tokens, want.max_tokens, want.max_output_tokens)
    limit = next((n for n in given if _is_count(n)), ASSUMED_OUTPUT_TOKENS)
    return min(limit * (want.n if _is_count(want.n) else 1), _OUTPUT_TOKENS_MAX)


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
