"""An agent's tasks in a few words: ``agent: solved 24 of 30 (80 %); steps p50 2, max 5; model p50 812 ms; …``."""

from collections.abc import Callable, Iterator

from withstand.metrics.summary import AgentSide, Distribution, Summary
from withstand.report.numbers import count, number, percent, plain


def agent_lines(summary: Summary) -> Iterator[str]:
    """A line a stage; the stage is named where there are several."""
    for stage in summary.stages:
        if stage.agent:
            whose = f" ({stage.name})" if len(summary.stages) > 1 else ""
            yield f"agent{whose}: {'; '.join(_facts(stage.agent))}"


def _facts(agent: AgentSide) -> Iterator[str]:
    if agent.success_rate is not None:
        yield f"solved {count(agent.solved)} of {count(agent.tasks)} ({percent(agent.success_rate)})"
    if agent.limited:
        yield f"ended by a limit {count(agent.limited)}"
    if agent.steps.n:
        yield f"steps p50 {_p50(agent.steps, plain)}, max {plain(agent.steps.max)}"
    for name, times in (("model", agent.model), ("tools", agent.tools), ("else", agent.own)):
        if times.n:
            yield f"{name} p50 {_p50(times, number)} ms"
    if agent.final_ttft.n:
        yield f"TTFT of the answer p50 {_p50(agent.final_ttft, number)} ms"
    if agent.tokens.n:
        yield f"tokens a task p50 {_p50(agent.tokens, plain)}"
    if agent.tool_calls:
        calls = ", ".join(f"{name} {count(n)}" for name, n in agent.tool_calls.items())
        failed = sum(agent.failed_tool_calls.values())
        yield f"calls of tools: {calls}" + (f" ({count(failed)} failed)" if failed else "")


def _p50(values: Distribution, written: Callable[[float | None], str]) -> str:
    return written(values.percentiles.get("p50"))
