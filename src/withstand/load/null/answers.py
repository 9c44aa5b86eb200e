"""The null server's bytes, made once: a chat completion as vLLM writes it, streamed or whole. Pure."""

import msgspec

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\n%s\r\n\r\n"
_COMMON = {"id": "chatcmpl-null", "object": "chat.completion.chunk", "created": 1, "model": "null"}
_WORD = " token"


def script(tokens: int) -> tuple[bytes, ...]:
    """A streamed answer as its writes: one token each; head and role before the first, usage and end behind the last.

    ``tokens`` is at least 2.
    """
    head = _HEAD % (b"text/event-stream", b"transfer-encoding: chunked")
    usage = {"prompt_tokens": 32, "completion_tokens": tokens, "total_tokens": 32 + tokens}
    first = head + _event(_delta({"role": "assistant", "content": ""})) + _event(_delta({"content": _WORD}))
    middle = _event(_delta({"content": _WORD}))
    last = _event(_delta({"content": _WORD}, "length")) + _event({**_COMMON, "choices": [], "usage": usage})
    return (first, *[middle] * (tokens - 2), last + _chunk(b"data: [DONE]\n\n") + _chunk(b""))


def whole() -> bytes:
    """An answer of one token that is not streamed."""
    choice = {"index": 0, "message": {"role": "assistant", "content": _WORD}, "finish_reason": "length"}
    usage = {"prompt_tokens": 32, "completion_tokens": 1, "total_tokens": 33}
    body = msgspec.json.encode({**_COMMON, "object": "chat.completion", "choices": [choice], "usage": usage})
    return _HEAD % (b"application/json", b"content-length: %d" % len(body)) + body


def _delta(delta: dict[str, str], finish_reason: str | None = None) -> dict[str, object]:
    return {**_COMMON, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}]}


def _event(fields: dict[str, object]) -> bytes:
    return _chunk(b"data: " + msgspec.json.encode(fields) + b"\n\n")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)
