"""The shape of a way, and what a model has said so far. Messages are OpenAI's, whatever the way makes of them."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta, Struct

from withstand.agent.tools.tool import Tool

Message = dict[str, Any]
Say = Callable[[str], None]
"""Takes text of the answer as it comes."""


class Function(Struct):
    """A piece of what is called; some servers tell ``arguments`` as an object, which is left out."""

    name: str | None = None
    arguments: Any = None


class Call(Struct):
    """A piece of one call."""

    index: Annotated[int, Meta(ge=-(1 << 40), le=1 << 40)] | None = None
    id: str | None = None
    function: Function | None = None


class Delta(Struct):
    """A piece of an answer."""

    content: str | None = None
    tool_calls: list[Call] | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    """These two are only counted."""


class Reading(Protocol):
    """One call's stream as it comes."""

    started: bool
    """Whether anything was put out."""

    def feed(self, delta: Delta) -> None:
        """The next delta."""

    def message(self) -> Message:
        """All that was said, as a message of the assistant; its ``tool_calls`` are what it wants."""


class Way(Protocol):
    """How a model is asked."""

    def body(self, messages: Sequence[Message], tools: Sequence[Tool]) -> dict[str, Any]:
        """The fields of a request that it is about; without tools it has to answer."""

    def reading(self, say: Say, tools: Sequence[Tool]) -> Reading:
        """Who reads the answer."""


def choice_of(tool_choice: str, messages: Sequence[Message]) -> str:
    """``required`` holds for the first call of a task: behind a tool's result the model may answer."""
    return tool_choice if messages and messages[-1]["role"] == "user" else "auto"


def remembered(messages: Sequence[Message], forgotten: int) -> list[Message]:
    """Without the first ones, but for what the system says."""
    return [*(m for m in messages[:forgotten] if m["role"] == "system"), *messages[forgotten:]]


def halved(messages: Sequence[Message], forgotten: int, history: int) -> int:
    """How many messages to forget next: about half of those that stand between, up to a question's beginning.

    ``history`` is how many stood before the task; it is never more, and always above ``forgotten``.
    """
    starts = [i for i in range(forgotten + 1, history) if messages[i]["role"] == "user"]
    return next((i for i in starts if i >= (forgotten + history) / 2), history)


def whole(messages: Sequence[Message]) -> list[Message]:
    """Without calls that were never answered: a task may have been left in the middle.

    Arguments that are no JSON object are left out: an engine that reads them would refuse the whole conversation.
    """
    found: list[Message] = []
    for i, message in enumerate(messages):
        wanted = {call["id"] for call in message.get("tool_calls") or ()}
        given = set()
        for later in messages[i + 1 :]:
            if later["role"] != "tool":
                break
            given.add(later["tool_call_id"])
        orphan = message["role"] == "tool" and not _is_answer(message, found)
        if wanted <= given and not orphan:
            found.append(_sound(message) if wanted else message)
    return found


def _sound(message: Message) -> Message:
    calls = [
        call
        if _is_object(call["function"]["arguments"])
        else {**call, "function": {**call["function"], "arguments": "{}"}}
        for call in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}


def _is_object(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def _is_answer(message: Message, before: Sequence[Message]) -> bool:
    asking = next((m for m in reversed(before) if m["role"] != "tool"), {})
    return any(call["id"] == message["tool_call_id"] for call in asking.get("tool_calls") or ())
