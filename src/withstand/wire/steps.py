"""The steps of an agent, as `withstand agent` tells of them: ``"withstand": {"step": …}`` of an event, or of a body."""

from typing import Any

import msgspec

from withstand.record import Step
from withstand.wire.reply import Reply, one_line

_NAME_CHARS = 64
Ms = float | None


class _Told(msgspec.Struct):
    kind: str
    name: str = ""
    ok: bool = True
    ms: Ms = None
    ttft_ms: Ms = None
    server_timing: str | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None


class _Steps(msgspec.Struct):
    step: _Told | None = None
    steps: list[_Told] = []
    server_timing: str | None = None


def take_steps(told: Any, reply: Reply, stamp_ns: int | None) -> None:
    """Behind what has been said so far; another shape is somebody else's, and says nothing."""
    try:
        steps = msgspec.convert(told, _Steps)
    except msgspec.ValidationError:
        return
    if steps.server_timing:
        reply.server_timing = one_line(steps.server_timing)
    for each in [steps.step] if steps.step else steps.steps:
        step = Step(
            kind=each.kind[:_NAME_CHARS],
            name=each.name[:_NAME_CHARS],
            ok=each.ok,
            at_ns=stamp_ns,
            events=len(reply.chunk_ns),
            took_ns=_ns(each.ms),
            ttft_ns=_ns(each.ttft_ms),
            server_timing=one_line(each.server_timing) if each.server_timing else None,
            prompt_tokens=each.prompt_tokens,
            output_tokens=each.output_tokens,
        )
        reply.steps.append(step)


def _ns(ms: Ms) -> int | None:
    return None if ms is None or not 0 <= ms < 1e12 else round(ms * 1e6)
