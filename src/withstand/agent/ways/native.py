"""``native``: the API's own ``tools``, for models and engines that can do it."""

from collections.abc import Sequence
from typing import Any

from withstand.agent.tools.tool import Tool
from withstand.agent.ways.way import Call, Delta, Function, Message, Say, choice_of

_CALLS_MAX = 64


class Native:
    """See the module."""

    def __init__(self, tool_choice: str = "auto") -> None:
        self._choice = tool_choice

    def body(self, messages: Sequence[Message], tools: Sequence[Tool]) -> dict[str, Any]:
        """With the tools declared."""
        fields: dict[str, Any] = {"messages": list(messages)}
        if tools:
            fields |= {"tools": [tool.declared for tool in tools], "tool_choice": choice_of(self._choice, messages)}
        return fields

    def reading(self, say: Say, tools: Sequence[Tool]) -> "NativeReading":  # noqa: ARG002  one shape for all
        """Text is passed on as it comes."""
        return NativeReading(say)


class NativeReading:
    """Puts the pieces of calls together."""

    def __init__(self, say: Say) -> None:
        self.started = False
        self._say = say
        self._text: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}

    def feed(self, delta: Delta) -> None:
        """The next delta."""
        if text := delta.content:
            self.started = True
            self._text.append(text)
            self._say(text)
        for piece in delta.tool_calls or ():
            self.started = True
            self._add(len(self._calls) if piece.index is None else piece.index, piece)

    def _add(self, index: int, piece: Call) -> None:
        if index not in self._calls and len(self._calls) >= _CALLS_MAX:
            return
        call = self._calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
        function = piece.function or Function()
        call["id"] = call["id"] or piece.id or f"call_{index}"
        call["name"] += function.name or ""
        call["arguments"] += function.arguments if isinstance(function.arguments, str) else ""

    def message(self) -> Message:
        """All that was said."""
        message: Message = {"role": "assistant", "content": "".join(self._text)}
        if self._calls:
            message["tool_calls"] = [
                {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
                for _, c in sorted(self._calls.items())
            ]
        return message
