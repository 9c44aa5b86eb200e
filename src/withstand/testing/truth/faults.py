"""Wrong answers, each in one way: what a client must not take for a success, nor for another failure."""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from withstand.metrics.doubts import DoubtKind
from withstand.record import Status
from withstand.testing.truth import laid
from withstand.testing.truth.behaviour import Behaviour, fixed, whole_number
from withstand.testing.truth.score import End
from withstand.testing.truth.style import Break, Refusal, Style

_HTML = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>"
_SENTENCE = "Error: upstream connect error, 503 Service Unavailable. Please try again later."


def error_body(message: str, kind: str, code: int) -> bytes:
    """An error as OpenAI and vLLM spell it."""
    return msgspec.json.encode({"error": {"message": message, "type": kind, "param": None, "code": code}})


_BROKEN = error_body("EngineCore encountered an issue", "InternalServerError", 500)


def error_before_token(style: Style, _: float | None) -> Style:
    """An error where the first token should be."""
    return replace(style, broken=Break(0, _BROKEN))


def error_midstream(style: Style, number: float | None) -> Style:
    """An error after some tokens, and still a [DONE]."""
    return replace(style, broken=Break(whole_number(number), _BROKEN))


def error_midstream_no_done(style: Style, number: float | None) -> Style:
    """An error after some tokens, and the end of the body."""
    return replace(style, broken=Break(whole_number(number), _BROKEN), done=False)


def malformed(style: Style, number: float | None) -> Style:
    """JSON that stops in the middle."""
    return replace(style, broken=Break(whole_number(number), b'{"id":"chatcmpl-truth","choices":[{"index":0,"del'))


def premature_close(style: Style, number: float | None) -> Style:
    """The connection is closed within a chunk."""
    return replace(style, wire=(*style.wire, laid.broken_off(whole_number(number))), end=End.CLOSE)


def limited(style: Style, number: float | None) -> Style:
    """Come again later."""
    body = error_body("Rate limit reached", "RateLimitError", 429)
    refusal = _refused(429, body, "application/json", f"Retry-After: {whole_number(number) or 1}")
    return replace(style, refusal=refusal)


def reset(style: Style, number: float | None) -> Style:
    """The connection is reset within a chunk."""
    return replace(style, wire=(*style.wire, laid.broken_off(whole_number(number))), end=End.RESET)


def _refused(status: int, body: bytes, content_type: str = "application/json", *headers: str) -> Refusal:
    return Refusal(status, content_type, body, headers)


_HALF = "tokens before it, else half"

FAULTS: Final[Mapping[str, Behaviour]] = {
    "error_before_token": Behaviour(
        error_before_token,
        "HTTP 200, an error event where the first token should be, then `[DONE]`",
        "not a success, in spite of the 200 and the `[DONE]`",
        Status.STREAM_ERROR,
    ),
    "error_midstream": Behaviour(
        error_midstream, "an error event after some tokens, then `[DONE]`", "not a success", Status.STREAM_ERROR, _HALF
    ),
    "error_midstream_no_done": Behaviour(
        error_midstream_no_done,
        "an error event after some tokens, then the end of the body",
        "not a success",
        Status.STREAM_ERROR,
        _HALF,
    ),
    "malformed": Behaviour(
        malformed, "an event of half a JSON after some tokens, then `[DONE]`", "not a success", Status.BAD_ANSWER, _HALF
    ),
    "missing_done": Behaviour(
        fixed(done=False),
        "everything but the `[DONE]`, and the body ends as it should",
        "a success, since a finish reason was told",
    ),
    "cut_short": Behaviour(
        fixed(done=False, broken=Break(None, None)),
        "half of the tokens, then the body ends as if that were all: no finish reason, no `[DONE]`",
        "not a success",
        Status.TRUNCATED,
    ),
    "premature_close": Behaviour(
        premature_close, "the connection is closed within a chunk", "not a success", Status.TRUNCATED, _HALF
    ),
    "close_before_done": Behaviour(
        fixed(finish_apart=True, wire=(laid.until_last_token,), end=End.CLOSE),
        "the connection is closed after the last token: no finish reason, no `[DONE]`, no last chunk",
        "not a success",
        Status.TRUNCATED,
    ),
    "finish_abort": Behaviour(
        fixed(finish="abort"),
        "all tokens, then `finish_reason: abort`, as an engine that gave up says it",
        "not a success",
        Status.STREAM_ERROR,
    ),
    "reset": Behaviour(reset, "the connection is reset within a chunk", "not a success", Status.TRUNCATED, _HALF),
    "close_before_answer": Behaviour(
        fixed(silent=True, end=End.CLOSE),
        "the connection is closed without a byte",
        "may be sent once more if the connection had served before; else a failure",
        Status.RESET,
    ),
    "reset_before_answer": Behaviour(
        fixed(silent=True, end=End.RESET), "the connection is reset without a byte", "the same", Status.RESET
    ),
    "hang": Behaviour(fixed(silent=True, end=End.HANG), "never a byte", "its own time-out", Status.TIMEOUT),
    "empty_200": Behaviour(
        fixed(sentence=()), "a stream without a token, then `[DONE]`", "not a success", Status.EMPTY
    ),
    "empty_body": Behaviour(
        fixed(refusal=_refused(200, b"", "text/event-stream")), "HTTP 200 and no body", "not a success", Status.EMPTY
    ),
    "error_text_as_content": Behaviour(
        fixed(sentence=tuple(f" {word}" if i else word for i, word in enumerate(_SENTENCE.split()))),
        "an error sentence played word by word with HTTP 200, `stop` and `[DONE]`",
        "a success by form; whoever judges must see the text and doubt",
        doubt=DoubtKind.ERROR_TEXT,
    ),
    "html_error": Behaviour(
        fixed(refusal=_refused(502, _HTML, "text/html")), "HTTP 502 with a page", "the status", Status.HTTP_ERROR
    ),
    "html_200": Behaviour(
        fixed(refusal=_refused(200, _HTML, "text/html")), "HTTP 200 with a page", "not a success", Status.BAD_ANSWER
    ),
    "non_json": Behaviour(
        fixed(refusal=_refused(200, b"upstream connected\n")),
        "HTTP 200 with a text that claims to be JSON",
        "not a success",
        Status.BAD_ANSWER,
    ),
    "http_500": Behaviour(
        fixed(refusal=_refused(500, error_body("Internal server error", "InternalServerError", 500))),
        "HTTP 500 with a JSON error",
        "the status and the message",
        Status.HTTP_ERROR,
    ),
    "http_503": Behaviour(
        fixed(refusal=_refused(503, error_body("No worker is ready", "ServiceUnavailable", 503))),
        "HTTP 503 with a JSON error",
        "the status and the message",
        Status.HTTP_ERROR,
    ),
    "limited": Behaviour(
        limited, "HTTP 429 with `Retry-After: 1`", "a limiter spoke, not the engine", Status.LIMITED, "seconds (1)"
    ),
    "redirect": Behaviour(
        fixed(refusal=_refused(307, b"", "text/plain", "Location: moved")),
        "HTTP 307 to another path, where the answer is `plain`",
        "says so, or follows",
        Status.BAD_ANSWER,
        either=True,
    ),
}
