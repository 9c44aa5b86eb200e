"""OpenAI's forms of an answer: events of a stream, a whole body, an error. Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec

from withstand.agent.budget import Budget
from withstand.agent.step import Step

DONE = b"data: [DONE]\n\n"


class Forms:
    """Those of one answer."""

    def __init__(self, id_: str, model: str, created_s: int) -> None:
        self._id = f"chatcmpl-{id_}"
        self._model = model
        self._created_s = created_s

    def role(self) -> bytes:
        """The first event."""
        return self._delta({"role": "assistant", "content": ""})

    def text(self, text: str) -> bytes:
        """A piece of the answer."""
        return self._delta({"content": text})

    def step(self, step: Step) -> bytes:
        """A step that is over: an event without output."""
        return self._delta({}, withstand={"step": step})

    def end(self, finish: str, timing: str) -> bytes:
        """Why it ended, and where the time went: the head has gone before anybody knew."""
        return self._delta({}, finish, withstand={"server_timing": timing})

    def usage(self, budget: Budget) -> bytes:
        """The tokens of all calls."""
        return _event({**self._head("chat.completion.chunk"), "choices": [], "usage": _usage(budget)})

    def whole(self, text: str, finish: str, budget: Budget, steps: Sequence[Step]) -> bytes:
        """The answer at once."""
        message = {"role": "assistant", "content": text}
        return msgspec.json.encode(
            {
                **self._head("chat.completion"),
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                "usage": _usage(budget),
                "withstand": {"steps": steps},
            }
        )

    def _delta(self, delta: dict[str, Any], finish: str | None = None, **more: object) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event({**self._head("chat.completion.chunk"), "choices": [choice], **more})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created_s, "model": self._model}


def error(text: str, kind: str, code: str) -> dict[str, Any]:
    """An error's body."""
    return {"error": {"message": text, "type": kind, "param": None, "code": code}}


def error_event(tree: dict[str, Any]) -> bytes:
    """An error in a stream, behind which there is no end."""
    return _event(tree)


def server_timing(model_ms: float, tool_ms: float, all_ms: float) -> str:
    """Where the time went, in ms; ``agent`` is what is left."""
    rest = max(0.0, all_ms - model_ms - tool_ms)
    return f"model;dur={model_ms:.3f}, tool;dur={tool_ms:.3f}, agent;dur={rest:.3f}"


def _event(tree: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(tree) + b"\n\n"


def _usage(budget: Budget) -> dict[str, int]:
    prompt, output = budget.prompt_tokens, budget.output_tokens
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
