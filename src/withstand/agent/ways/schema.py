"""``schema``: each answer is a JSON object that a schema holds the model to, for models whose template knows no tools.

``{"action": NAME, "input": TEXT}``; the action ``answer`` ends the task, and its input is passed on while it comes.
Before the task stand the tools' examples, as if they had been asked: small models imitate what they do not understand.
llama.cpp, vLLM, SGLang and OpenAI all take ``response_format``.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from withstand.agent.tools.tool import Example, Tool
from withstand.agent.ways.way import Delta, Message, Say, choice_of

ANSWER = "answer"
_HEAD = re.compile(r'\s*\{\s*"action"\s*:\s*"((?:[^"\\]|\\.)*)"\s*,\s*"input"\s*:\s*"')
_STRING_PIECE = re.compile(
    r'(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|u[0-9a-fA-F]{4}))+'
)
_HALF_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}$")
_CHARS_MAX = 1 << 20


class Schema:
    """See the module."""

    def __init__(self, tool_choice: str = "auto") -> None:
        self._choice = tool_choice

    def body(self, messages: Sequence[Message], tools: Sequence[Tool]) -> dict[str, Any]:
        """With the tools described in words, and the schema."""
        told = [{"role": "system", "content": _instructions(messages, tools)}]
        told += [_as_text(m) for tool in tools if tool.example for m in _shown(tool.name, tool.example)]
        told += [_as_text(m) for m in messages if m["role"] != "system"]
        may_answer = not tools or choice_of(self._choice, messages) == "auto"
        form = {"name": "step", "strict": True, "schema": schema_of(tools, may_answer=may_answer)}
        return {"messages": told, "response_format": {"type": "json_schema", "json_schema": form}}

    def reading(self, say: Say, tools: Sequence[Tool]) -> "SchemaReading":
        """Only the answer is passed on."""
        return SchemaReading(say, {tool.name: tool for tool in tools})


def schema_of(tools: Sequence[Tool], *, may_answer: bool = True) -> dict[str, Any]:
    """The action stands first, so that it is known before the input is over."""
    actions = [*(tool.name for tool in tools), *([ANSWER] if may_answer else ())]
    return {
        "type": "object",
        "properties": {"action": {"type": "string", "enum": actions}, "input": {"type": "string"}},
        "required": ["action", "input"],
        "additionalProperties": False,
    }


def _instructions(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    system = [str(m["content"]) for m in messages if m["role"] == "system"]
    told = [f"- {tool.name}: {tool.purpose} input: {tool.meaning}." for tool in tools]
    lead = 'Say one JSON object: {"action": ..., "input": ...}. Actions:'
    return "\n".join([*system, lead, *told, f"- {ANSWER}: ends the task. input: the answer to the user."])


def _shown(name: str, example: Example) -> list[Message]:
    """An example as it would have gone."""
    call = {"name": name, "arguments": msgspec.json.encode({"": example.argument}).decode()}
    return [
        {"role": "user", "content": example.question},
        {"role": "assistant", "tool_calls": [{"function": call}]},
        {"role": "tool", "content": example.result},
        {"role": "assistant", "content": example.answer},
    ]


def _as_text(message: Message) -> Message:
    """Calls and results as texts of assistant and user, which every template knows."""
    if message["role"] == "tool":
        return {"role": "user", "content": f"Result: {message['content']}"}
    if message["role"] == "assistant":
        calls = message.get("tool_calls")
        if not calls:
            return {"role": "assistant", "content": _said(ANSWER, str(message.get("content") or ""))}
        function = calls[0]["function"]
        try:
            arguments = msgspec.json.decode(function["arguments"], type=dict[str, Any])
        except msgspec.MsgspecError:
            arguments = {}
        told = str(next(iter(arguments.values()), ""))
        return {"role": "assistant", "content": _said(function["name"], told)}
    return message


def _said(action: str, told: str) -> str:
    return msgspec.json.encode({"action": action, "input": told}).decode()


class SchemaReading:
    """Finds the action, then decodes the input's string piece by piece."""

    def __init__(self, say: Say, tools: Mapping[str, Tool]) -> None:
        self.started = False
        self._say = say
        self._tools = tools
        self._raw = ""
        self._action: str | None = None
        self._at = 0
        """How far the input has been decoded."""
        self._input: list[str] = []

    def feed(self, delta: Delta) -> None:
        """The next delta."""
        text = delta.content
        if not text or len(self._raw) > _CHARS_MAX:
            return
        self.started = True
        self._raw += text
        if self._action is None and (head := _HEAD.match(self._raw)):
            self._action, self._at = head[1], head.end()
        if self._action is not None and (new := self._decoded()):
            self._input.append(new)
            if self._action not in self._tools:
                self._say(new)

    def _decoded(self) -> str:
        """What is whole of the string's escapes, and not before."""
        piece = _STRING_PIECE.match(self._raw, self._at)
        if piece is None:
            return ""
        raw = _HALF_PAIR.sub("", piece[0])
        self._at += len(raw)
        return str(json.loads(f'"{raw}"')).encode("utf-8", "replace").decode() if raw else ""

    def message(self) -> Message:
        """All that was said; what is no such object is taken as an answer."""
        if self._action is None:
            if self._raw.strip():
                self._say(self._raw)
            return {"role": "assistant", "content": self._raw}
        told = "".join(self._input)
        if (tool := self._tools.get(self._action)) is None:
            return {"role": "assistant", "content": told}
        arguments = msgspec.json.encode({tool.argument: told}).decode()
        call = {"id": "call_0", "type": "function", "function": {"name": tool.name, "arguments": arguments}}
        return {"role": "assistant", "content": "", "tool_calls": [call]}
