"""A client's request, read and checked: OpenAI's chat completions, without tools of its own."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from withstand.agent.ways.way import Message

PASSED_ON = ("traceparent", "tracestate", "baggage", "x-request-id", "x-session-id")
_ID_CHARS = 200
_PLAIN = re.compile(r"[\t -~]*")


class RefusedError(Exception):
    """The request cannot be served; the text says why."""

    def __init__(self, status: int, text: str, code: str = "invalid_request") -> None:
        super().__init__(text)
        self.status = status
        self.code = code


class _Part(Struct):
    type: str
    text: str = ""


class _Said(Struct):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part] | None = None

    def plain(self) -> Message:
        """As the graph keeps it."""
        content = self.content or ""
        if not isinstance(content, str):
            if any(part.type != "text" for part in content):
                raise RefusedError(400, "The agent reads text only; leave other parts out of `messages`.")
            content = "\n".join(part.text for part in content)
        return {"role": "system" if self.role == "developer" else self.role, "content": content}


class _StreamOptions(Struct):
    include_usage: bool = False


class _Body(Struct):
    model: str
    messages: Annotated[list[_Said], Meta(min_length=1)]
    stream: bool = False
    stream_options: _StreamOptions | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    n: int | None = None
    tools: list[Any] | None = None
    session_id: str | None = None


class Asked(Struct, frozen=True, kw_only=True):
    """What is wanted."""

    messages: list[Message]
    stream: bool
    include_usage: bool
    max_tokens: int | None
    """Of the answer."""
    session: str | None


_decoder = msgspec.json.Decoder(_Body)


def read_request(body: bytes, headers: Mapping[str, str], name: str) -> Asked:
    """Typed and checked; ``name`` is the agent's.

    Raises:
        RefusedError: it cannot be served.
    """
    for field in (*PASSED_ON, "authorization"):
        if not _PLAIN.fullmatch(headers.get(field, "")):
            raise RefusedError(400, f"The header `{field}` goes on to the model, and so may hold ASCII only.")
    try:
        told = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise RefusedError(400, f"The request is wrong: {e}.") from None
    if told.model != name:
        raise RefusedError(404, f"There is no model {told.model!r} here; ask for {name!r}.", "model_not_found")
    if told.n not in {None, 1}:
        raise RefusedError(400, "The agent gives one answer; leave `n` out.")
    if told.tools:
        raise RefusedError(400, "The agent has tools of its own; leave `tools` out.")
    messages = [said.plain() for said in told.messages]
    if messages[-1]["role"] != "user":
        raise RefusedError(400, "The last message has to be the user's.")
    session = headers.get("x-session-id") or told.session_id
    if session and len(session) > _ID_CHARS:
        raise RefusedError(400, f"A session's name has at most {_ID_CHARS} characters.")
    return Asked(
        messages=messages,
        stream=told.stream,
        include_usage=bool(told.stream_options and told.stream_options.include_usage),
        max_tokens=told.max_completion_tokens or told.max_tokens,
        session=session or None,
    )


def new_of(messages: list[Message]) -> list[Message]:
    """What a session that is known has not heard: all behind the last answer."""
    last = max((i for i, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    return [message for message in messages[last + 1 :] if message["role"] != "system"]
