"""What happened on the way to an answer: one row of facts for each call of the model and of a tool.

They stand in the stream as ``"withstand": {"step": …}`` of a chunk with an empty delta, which clients of OpenAI's API
pass over; without streaming as ``"withstand": {"steps": […]}`` of the body.
"""

from typing import Literal

from msgspec import Struct


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step that is over. Times in ms of the agent's clock; None = not known."""

    kind: Literal["model", "tool", "limit"]
    """``limit``: the task was ended by the one that ``name`` says."""
    name: str
    step: int
    """Which call of the model it was, or followed; from 1."""
    ok: bool = True
    ms: float = 0.0
    ttft_ms: float | None = None
    """Of the model: until its first output, a tool's call included."""
    server_timing: str | None = None
    """Of the model: what its server told of that time, as it came."""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    calls: int | None = None
    """Of the model: how many tools it wants; 0 = it has answered."""
    input: str | None = None
    """Of a tool: the beginning of what it was asked."""
    error: str | None = None
