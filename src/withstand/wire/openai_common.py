"""What the two OpenAI dialects share: fields of the request, usage, errors, the reading of a stream."""

from collections.abc import Callable
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from withstand.record import Status
from withstand.request import Request
from withstand.wire.dialect import Ask
from withstand.wire.reply import OnObject, Reply
from withstand.wire.sse import EventTooLargeError, SseParser
from withstand.wire.steps import take_steps

_BROKEN_FINISHES = frozenset({"error", "abort"})
_MESSAGE_KEYS = ("error", "message", "detail", "title")
_NESTED_MAX = 16
_SHOWN_BYTES = 600
_PROMPT_MS_MAX = 1e9


Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]


class Details(msgspec.Struct, gc=False):
    """Parts of a count."""

    cached_tokens: Count | None = None
    reasoning_tokens: Count | None = None


class Usage(msgspec.Struct, gc=False):
    """The server's own count."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: Details | None = None
    completion_tokens_details: Details | None = None


ChoiceT = TypeVar("ChoiceT")


class Chunk(msgspec.Struct, Generic[ChoiceT], gc=False):
    """An event of a stream, or a whole body: they differ only in their choices. It may be an error instead."""

    choices: list[ChoiceT] | None = None
    usage: Usage | None = None
    error: Any = None
    object: str | None = None
    message: str | None = None
    withstand: Any = None
    """An agent's steps, where it is ours."""
    timings: Any = None
    """llama.cpp's, in a stream's last event and in a whole answer. Anybody may say anything there."""


def read_chunk(
    decode: Callable[[bytes], Chunk[ChoiceT]], payload: bytes, reply: Reply, stamp_ns: int | None = None
) -> Chunk[ChoiceT] | None:
    """The chunk, its usage taken; None when it is an error or no chunk at all: then the reply has failed.

    ``stamp_ns`` None = it is a whole body, so nobody knows when its steps were told.
    """
    try:
        chunk = decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
        start = payload[:80].decode("utf-8", "replace")
        reply.fail(Status.BAD_ANSWER, f"Not of this dialect: {e}; it begins with {start!r}")
        return None
    if (chunk.error or not chunk.choices) and _is_error(chunk):
        told = _message_of(chunk.error) or chunk.message or payload[:_SHOWN_BYTES].decode("utf-8", "replace")
        reply.fail(Status.STREAM_ERROR, told)
        return None
    if chunk.usage:
        take_usage(chunk.usage, reply)
    if chunk.timings is not None:
        reply.prefill_ns = prefill_ns_of(chunk.timings)
    if chunk.withstand is not None:
        take_steps(chunk.withstand, reply, stamp_ns)
    return chunk


def _is_error(chunk: Chunk[Any]) -> bool:
    if chunk.error:
        return True
    return chunk.object == "error" or (chunk.choices is None and chunk.usage is None and chunk.message is not None)


def base_body(request: Request, ask: Ask, max_tokens_field: str) -> dict[str, Any]:
    """The body but for its prompt; what the user adds wins over what the dataset adds, and that over ours."""
    body: dict[str, Any] = {"model": ask.model} if ask.model else {}
    body["stream"] = ask.stream
    if ask.stream:
        body["stream_options"] = {"include_usage": True}
    if request.output_tokens is not None:
        body[ask.max_tokens_field or max_tokens_field] = request.output_tokens
        if ask.min_tokens:
            body["min_tokens"] = request.output_tokens
    if request.ignore_eos:
        body["ignore_eos"] = True
    return body | request.extra_body | ask.extra_body


def take_usage(usage: Usage, reply: Reply) -> None:
    """The latest count replaces the one before."""
    if usage.prompt_tokens is not None:
        reply.prompt_tokens = usage.prompt_tokens
    if usage.completion_tokens is not None:
        reply.output_tokens = usage.completion_tokens
    if usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens is not None:
        reply.cached_tokens = usage.prompt_tokens_details.cached_tokens
    if usage.completion_tokens_details and usage.completion_tokens_details.reasoning_tokens is not None:
        reply.reasoning_tokens = usage.completion_tokens_details.reasoning_tokens


def prefill_ns_of(timings: Any) -> int | None:
    """llama.cpp's ``prompt_ms``: from when the engine took the prompt up until it was computed."""
    prompt_ms = timings.get("prompt_ms") if isinstance(timings, dict) else None
    if not isinstance(prompt_ms, int | float) or not 0 <= prompt_ms <= _PROMPT_MS_MAX:
        return None
    return round(prompt_ms * 1e6)


def take_finish(finish_reason: str | None, reply: Reply) -> None:
    """A finish reason; an engine that gave up says so in it."""
    if finish_reason:
        reply.finish_reason = finish_reason
        if finish_reason in _BROKEN_FINISHES:
            reply.fail(Status.STREAM_ERROR, f"The engine ended the answer with finish_reason {finish_reason!r}")


class OpenAIStream:
    """Reads a stream of either dialect; ``on_chunk`` knows what a chunk looks like."""

    __slots__ = ("_lost", "_on_chunk", "_parser", "reply")

    def __init__(self, reply: Reply, on_chunk: OnObject) -> None:
        self.reply = reply
        self._parser = SseParser()
        self._on_chunk = on_chunk
        self._lost = False

    def feed(self, data: bytes, stamp_ns: int) -> None:
        """The next bytes, cut anywhere."""
        if self._lost:
            return
        try:
            events = self._parser.feed(data)
        except EventTooLargeError:
            self._lost = True
            self.reply.fail(Status.BAD_ANSWER, "An event of the stream has more than 16 MiB")
            return
        chunk_ns = self.reply.chunk_ns
        for kind, payload in events:
            before = len(chunk_ns)
            self._take(kind, payload, stamp_ns)
            self.reply.trailed = len(chunk_ns) == before
        if events and self._parser.trailed:
            self.reply.trailed = True

    @property
    def idle(self) -> bool:
        """Whether an event has ended here, and nothing of the next is known."""
        return self._parser.idle and not self._lost

    def close(self, stamp_ns: int) -> None:
        """The body has ended."""
        for kind, payload in self._parser.close():
            self._take(kind, payload, stamp_ns)

    def _take(self, kind: bytes | None, payload: bytes, stamp_ns: int) -> None:
        if payload.startswith(b"[DONE]"):
            self.reply.done = True
        elif kind == b"error":
            self.reply.fail(Status.STREAM_ERROR, error_text(payload))
        elif payload:
            self._on_chunk(payload, self.reply, stamp_ns)


def error_text(body: bytes) -> str:
    """The message inside an error body, whoever wrote it; else the beginning of the body itself."""
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body[:200].decode("utf-8", "replace")
    return _message_of(tree) or body[:200].decode("utf-8", "replace")


def _message_of(tree: Any) -> str | None:
    for _ in range(_NESTED_MAX):
        if isinstance(tree, str):
            return tree
        if not isinstance(tree, dict):
            return None
        tree = next((tree[key] for key in _MESSAGE_KEYS if tree.get(key)), None)
    return None
