"""The shape of a tool, and how one is called so that nothing that goes wrong in it ends the task."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec


class ToolError(Exception):
    """What went wrong, in words for the model."""


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A task that the tool solves, shown to models that learn its use from one."""

    question: str
    argument: str
    result: str
    answer: str


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool. It has one argument, a text: small models are good for no more, and large ones need no more."""

    name: str
    purpose: str
    argument: str
    meaning: str
    """What the argument is."""
    run: Callable[[str], Awaitable[str]]
    example: Example | None = None

    @property
    def declared(self) -> dict[str, Any]:
        """As the API's ``tools`` want it."""
        told = {"type": "string", "description": self.meaning}
        parameters = {
            "type": "object",
            "properties": {self.argument: told},
            "required": [self.argument],
            "additionalProperties": False,
        }
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.purpose, "parameters": parameters},
        }

    def argument_of(self, arguments: str) -> str:
        """The text in a call's JSON.

        Raises:
            ToolError: it is not there.
        """
        try:
            tree = msgspec.json.decode(arguments or "{}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ToolError(f"The arguments are no JSON; write {{{self.argument!r}: …}}.") from None
        told = tree.get(self.argument) if isinstance(tree, dict) else None
        if isinstance(told, int | float) and not isinstance(told, bool):
            told = str(told)
        if not isinstance(told, str) or not told.strip():
            raise ToolError(f"The argument {self.argument!r} is missing: {self.meaning}")
        return told.strip()


async def call(tool: Tool, arguments: str, seconds: float) -> tuple[bool, str]:
    """(Whether it went well, what the model is told)."""
    try:
        async with asyncio.timeout(seconds):
            return True, await tool.run(tool.argument_of(arguments))
    except ToolError as e:
        return False, f"Error: {e}"
    except TimeoutError:
        return False, f"Error: {tool.name} took more than {seconds:g} s."
    except Exception as e:  # noqa: BLE001  a tool that breaks is the model's news, not the task's end
        return False, f"Error: {tool.name} failed ({type(e).__name__})."
