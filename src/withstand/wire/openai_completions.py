"""OpenAI's completions: a bare prompt. A chat's messages are joined by blank lines."""

from collections.abc import Sequence

import msgspec

from withstand.request import Message, Request
from withstand.wire.dialect import Ask
from withstand.wire.openai_common import Chunk, OpenAIStream, base_body, read_chunk, take_finish
from withstand.wire.reply import Reply, StreamReader


class _Choice(msgspec.Struct, gc=False):
    text: str | None = None
    finish_reason: str | None = None


_decode = msgspec.json.Decoder(Chunk[_Choice]).decode


class OpenAICompletions:
    """``POST /v1/completions``."""

    name = "openai"
    path = "/v1/completions"

    def encode(self, request: Request, history: Sequence[Message], ask: Ask) -> bytes:
        """The JSON body."""
        prompt = "\n\n".join(m.content for m in (*history, *request.messages) if m.content is not None)
        return msgspec.json.encode({"prompt": prompt, **base_body(request, ask, "max_tokens")})

    def stream_reader(self, reply: Reply) -> StreamReader:
        """For ``text/event-stream``."""
        return OpenAIStream(reply, _read)

    def read_whole(self, body: bytes, reply: Reply, stamp_ns: int) -> None:
        """For ``application/json``."""
        _read(body, reply, stamp_ns)
        reply.done = True


DIALECT = OpenAICompletions()


def _read(payload: bytes, reply: Reply, stamp_ns: int) -> None:
    """A chunk of a stream and a whole body look alike here."""
    chunk = read_chunk(_decode, payload, reply)
    if chunk is None:
        return
    for choice in chunk.choices or ():
        if choice.text:
            reply.add_output(choice.text, stamp_ns, chunk.usage.completion_tokens if chunk.usage else None)
        take_finish(choice.finish_reason, reply)
