"""The shape of a way, and what a model has said so far. Messages are OpenAI's, whatever the way makes of them."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Protocol

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


def whole(messages: Sequence[Message]) -> list[Message]:
    """Without calls that were never answered: a task may have been left in the middle."""
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
            found.append(message)
    return found


def _is_answer(message: Message, before: Sequence[Message]) -> bool:
    asking = next((m for m in reversed(before) if m["role"] != "tool"), {})
    return any(call["id"] == message["tool_call_id"] for call in asking.get("tool_calls") or ())
