"""OpenAI's chat completions, as vLLM, SGLang, llama.cpp, TGI, Ollama and the gateways speak it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from withstand.request import Message, Request
from withstand.wire.dialect import Ask
from withstand.wire.openai_common import Chunk, OpenAIStream, base_body, read_chunk, take_finish
from withstand.wire.reply import Reply, StreamReader


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct, gc=False):
    function: _Function | None = None


class _Said(msgspec.Struct, gc=False):
    """A delta or a message: all the places where output can stand."""

    content: Any = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Said | None = None
    message: _Said | None = None
    finish_reason: str | None = None


_decode = msgspec.json.Decoder(Chunk[_Choice]).decode


class OpenAIChat:
    """``POST /v1/chat/completions``."""

    name = "openai-chat"
    path = "/v1/chat/completions"

    def encode(self, request: Request, history: Sequence[Message], ask: Ask) -> bytes:
        """The JSON body."""
        messages = [_message(m) for m in (*history, *request.messages)]
        return msgspec.json.encode({"messages": messages, **base_body(request, ask, "max_completion_tokens")})

    def stream_reader(self, reply: Reply) -> StreamReader:
        """For ``text/event-stream``."""
        reply.reasoning_events = 0
        return OpenAIStream(reply, _on_chunk)

    def read_whole(self, body: bytes, reply: Reply, stamp_ns: int) -> None:
        """For ``application/json``."""
        chunk = read_chunk(_decode, body, reply)
        if chunk is None:
            return
        for choice in chunk.choices or ():
            take_finish(choice.finish_reason, reply)
            if choice.message and (text := _text_of(choice.message)):
                reply.add_output(text, stamp_ns)
        reply.done = True


DIALECT = OpenAIChat()


def _message(message: Message) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": message.role}
    if message.content is not None or not message.extra:
        fields["content"] = message.content
    return fields | message.extra


def _on_chunk(payload: bytes, reply: Reply, stamp_ns: int) -> None:
    chunk = read_chunk(_decode, payload, reply, stamp_ns)
    if chunk is None:
        return
    for choice in chunk.choices or ():
        if choice.delta and (text := _text_of(choice.delta)):
            reply.add_output(text, stamp_ns, chunk.usage.completion_tokens if chunk.usage else None)
            if choice.delta.reasoning or choice.delta.reasoning_content:
                reply.reasoning_events = (reply.reasoning_events or 0) + 1
        if choice.finish_reason:
            take_finish(choice.finish_reason, reply)


def _text_of(said: _Said) -> str:
    """All that was said: content, reasoning under both names, refusal, the text of tool calls."""
    content = said.content
    if content and not isinstance(content, str):
        content = _text_of_parts(content)
    if not said.tool_calls and not said.reasoning and not said.reasoning_content and not said.refusal:
        return content or ""
    calls = [c.function for c in said.tool_calls or () if c.function]
    tools = "".join((f.name or "") + (f.arguments or "") for f in calls)
    return (said.reasoning or said.reasoning_content or "") + (content or "") + (said.refusal or "") + tools


def _text_of_parts(parts: Any) -> str:
    if not isinstance(parts, list):
        return ""
    return "".join(str(p.get("text") or "") for p in parts if isinstance(p, dict))
