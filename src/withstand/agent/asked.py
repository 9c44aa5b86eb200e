"""A client's request, read and checked: OpenAI's chat completions, without tools of its own."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from withstand.agent.ways.way import Message

PASSED_ON = ("traceparent", "tracestate", "baggage", "x-request-id", "x-session-id")
_ENDLESS = frozenset({"ignore_eos", "min_tokens"})
"""They forbid a call's end, which a grammar prescribes: llama.cpp fails, others have no token left to choose."""
_NOT_TOLD: tuple[Any, ...] = (None, False, [], {})
_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_NAMES = 20
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


Number = float | int | None


class Sampling(Struct):
    """What goes on to the model as it was said; its server judges the values."""

    temperature: Number = None
    top_p: Number = None
    top_k: Number = None
    min_p: Number = None
    typical_p: Number = None
    seed: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    presence_penalty: Number = None
    frequency_penalty: Number = None
    repetition_penalty: Number = None
    repeat_penalty: Number = None
    logit_bias: dict[str, Number] | None = None
    min_tokens: int | None = None
    ignore_eos: bool | None = None
    reasoning_effort: str | None = None


class _Body(Sampling, kw_only=True):
    model: str
    messages: Annotated[list[_Said], Meta(min_length=1)]
    stream: bool = False
    stream_options: _StreamOptions | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    n: int | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    response_format: dict[str, Any] | None = None
    logprobs: bool | int | None = None
    session_id: str | None = None


_REFUSED = {
    "tools": "has tools of its own",
    "functions": "has tools of its own",
    "response_format": "answers in text",
    "logprobs": "does not tell probabilities",
}
_HEEDED = frozenset(_Body.__struct_fields__)


class Asked(Struct, frozen=True, kw_only=True):
    """What is wanted."""

    messages: list[Message]
    stream: bool
    include_usage: bool
    max_tokens: int | None
    """Of the answer."""
    sampling: dict[str, Any]
    ignored: tuple[str, ...]
    """Fields that nothing here heeds."""
    session: str | None


def check_headers(headers: Mapping[str, str]) -> None:
    """Those that go on to the model's server.

    Raises:
        RefusedError: one cannot.
    """
    for field in (*PASSED_ON, "authorization"):
        if not _PLAIN.fullmatch(headers.get(field, "")):
            raise RefusedError(400, f"The header `{field}` goes on to the model, and so may hold ASCII only.")


def read_request(body: bytes, headers: Mapping[str, str], name: str, *, bound: bool = False) -> Asked:
    """Typed and checked; ``name`` is the agent's, and ``bound`` says that a grammar holds its calls.

    Raises:
        RefusedError: it cannot be served.
    """
    check_headers(headers)
    try:
        tree = msgspec.json.decode(body)
        told = msgspec.convert(tree, _Body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise RefusedError(400, f"The request is wrong: {e}.") from None
    if told.model != name:
        raise RefusedError(404, f"There is no model {told.model!r} here; ask for {name!r}.", "model_not_found")
    if told.n not in {None, 1}:
        raise RefusedError(400, "The agent gives one answer; leave `n` out.")
    for field, why in _REFUSED.items():
        if getattr(told, field) not in _NOT_TOLD and tree[field] != {"type": "text"}:
            raise RefusedError(400, f"The agent {why}; leave `{field}` out.")
    unheeded = _ENDLESS if bound else frozenset()
    sampling = {name: tree[name] for name in Sampling.__struct_fields__ if tree.get(name) is not None}
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
        sampling={name: value for name, value in sampling.items() if name not in unheeded},
        ignored=tuple(sorted(_names(tree) - _HEEDED | (sampling.keys() & unheeded)))[:_NAMES],
        session=session or None,
    )


def _names(tree: Mapping[str, Any]) -> set[str]:
    """Those that a header can hold."""
    return {name for name in tree if _NAME.fullmatch(name)}


def new_of(messages: list[Message]) -> list[Message]:
    """What a session that is known has not heard: all behind the last answer."""
    last = max((i for i, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    return [message for message in messages[last + 1 :] if message["role"] != "system"]
