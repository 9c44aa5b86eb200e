"""What the gateway says when it is not the engine that answers: pure, in the form that the route's clients know."""

from http import HTTPStatus

import msgspec
from msgspec import Struct

from withstand.gateway.routes import Dialect

RETRY_AFTER_S = 5
"""Where nothing tells when it will be otherwise."""
_ANTHROPIC_KINDS = {
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    502: "api_error",
    503: "overloaded_error",
}
"""Where Anthropic has a word of its own for a status."""


class Refusal(Struct, frozen=True):
    """A status, and why."""

    status: int
    kind: str
    message: str
    code: str | None = None
    retry_after_s: int | None = None
    closes: bool = False
    """The connection cannot be used any more."""
    hopeless: bool = False
    """Asking again soon is of no use."""
    limit: str | None = None
    """Of a key: the one that it is above."""


def bad_request(message: str, *, status: int = 400, closes: bool = False, code: str | None = None) -> Refusal:
    """The request cannot be understood, or is too large."""
    return Refusal(status, "invalid_request_error", message, code, closes=closes)


def failed(message: str) -> Refusal:
    """It was understood, and could not be done."""
    return Refusal(500, "internal_error", message)


def unauthorized() -> Refusal:
    """No key, or none that is known."""
    return Refusal(401, "authentication_error", "The API key is missing or unknown.", "invalid_api_key")


def forbidden() -> Refusal:
    """A key that is known, for something that it is not for."""
    return Refusal(403, "permission_error", "This needs a key with admin = true.", "forbidden")


def unknown_model(name: str) -> Refusal:
    """As OpenAI says it."""
    message = f"The model `{name}` does not exist or you do not have access to it."
    return Refusal(404, "invalid_request_error", message, "model_not_found")


def no_engine(model: str, retry_after_s: int, why: str = "") -> Refusal:
    """None that may be asked now; ``why`` is what was wrong with the last one."""
    message = f"No engine of `{model}` can be asked at present{f': {why}' if why else ''}."
    return Refusal(503, "service_unavailable", message, "no_engine", retry_after_s)


def not_started(model: str, why: str, retry_after_s: int) -> Refusal:
    """The command that was to be one has failed."""
    message = f"No engine of `{model}` can be asked at present. {why}"
    return Refusal(503, "service_unavailable", message, "engine_not_started", retry_after_s)


def not_ready(model: str, retry_after_s: int) -> Refusal:
    """It is being started, for longer than the request may wait."""
    message = f"No engine of `{model}` was ready in time; one is still being started, or waits for its turn."
    return Refusal(503, "service_unavailable", message, "engine_not_started", retry_after_s)


def busy(retry_after_s: int) -> Refusal:
    """More at once than this process may carry."""
    return Refusal(503, "service_unavailable", "The gateway is at its limit of requests.", "overloaded", retry_after_s)


def shutting_down(retry_after_s: int) -> Refusal:
    """This process ends; another may be there soon."""
    message = "The gateway is shutting down before the answer is complete; ask again."
    return Refusal(503, "service_unavailable", message, "shutting_down", retry_after_s, closes=True)


def overcrowded(retry_after_s: int) -> Refusal:
    """As above, but the connection cannot be kept either."""
    return msgspec.structs.replace(busy(retry_after_s), closes=True)


def queue_full(model: str, retry_after_s: int) -> Refusal:
    """All engines have enough to do, and as many requests wait as may."""
    message = f"All engines of `{model}` are busy, and its queue is full."
    return Refusal(503, "service_unavailable", message, "queue_full", retry_after_s)


def waited_too_long(model: str, retry_after_s: int) -> Refusal:
    """No engine had room in time."""
    message = f"No engine of `{model}` had room for the request in time."
    return Refusal(503, "service_unavailable", message, "queue_timeout", retry_after_s)


def bad_gateway(what: str) -> Refusal:
    """The engine broke before it answered."""
    return Refusal(502, "upstream_error", what, "engine_failed")


def timed_out(what: str) -> Refusal:
    """The engine took too long."""
    return Refusal(504, "timeout_error", what, "engine_timeout")


def body_of(refusal: Refusal, dialect: Dialect) -> bytes:
    """The JSON."""
    if dialect is Dialect.ANTHROPIC:
        return _typed(refusal, dialect)
    told = {"message": refusal.message, "type": refusal.kind, "param": None, "code": refusal.code}
    return msgspec.json.encode({"error": told})


def _typed(refusal: Refusal, dialect: Dialect) -> bytes:
    kind = refusal.kind
    if dialect is Dialect.ANTHROPIC:
        kind = _ANTHROPIC_KINDS.get(refusal.status, kind)
    return msgspec.json.encode(
        {"type": "error", "error": {"type": kind, "message": refusal.message, "code": refusal.code}}
    )


def answer(refusal: Refusal, dialect: Dialect, request_id: bytes, own: bytes = b"") -> bytes:
    """The whole HTTP answer; ``own`` are more header lines, each behind its line break."""
    body = body_of(refusal, dialect)
    lines = [
        f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        f"x-request-id: {request_id.decode('ascii')}",
    ]
    if refusal.retry_after_s is not None:
        lines.append(f"retry-after: {refusal.retry_after_s}")
    if refusal.hopeless:
        lines.append("x-should-retry: false")  # OpenAI's and Anthropic's clients heed it
    if refusal.closes:
        lines.append("connection: close")
    return "\r\n".join(lines).encode("ascii") + own + b"\r\n\r\n" + body


def relayed(status: int, body: bytes, dialect: Dialect) -> bytes:
    """An engine's answer that is no stream, as an event of a stream that comments have begun; an error is its own."""
    try:
        told = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        if "error" in told:
            name = b"" if dialect is Dialect.OPENAI else b"event: error\n"
            return b"%bdata: %b\n\n" % (name, msgspec.json.format(body, indent=-1))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # what it is not matters less than that it is not what was asked for
    return event(bad_gateway(f"The engine answered with status {status} and no stream."), dialect)


def event(refusal: Refusal, dialect: Dialect) -> bytes:
    """An error within a stream that has begun. No ``[DONE]`` and no finish follows it, for there was none."""
    if dialect is Dialect.OPENAI:
        return b"data: " + body_of(refusal, dialect) + b"\n\n"
    return b"event: error\ndata: " + _typed(refusal, dialect) + b"\n\n"
