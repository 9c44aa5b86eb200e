"""The ReAct loop as a graph of LangGraph: the model, then its tools, then the model, until it wants none."""

import asyncio
import operator
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired, TypeAlias, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from withstand import clock
from withstand.agent.config import Config
from withstand.agent.model import Model, ModelError, Said
from withstand.agent.step import Step
from withstand.agent.task import Task
from withstand.agent.tools.tool import Tool, call
from withstand.agent.ways.way import Message, halved, remembered, whole

_INPUT_CHARS = 200
_ERROR_CHARS = 400
_CUT = "It was cut: a limit was reached, or the client left."


class State(TypedDict):
    """What is kept of a session."""

    messages: Annotated[list[Message], operator.add]
    forgotten: NotRequired[int]
    """How many of the first messages the model is not shown any more, because it cannot read all of them."""


Graph: TypeAlias = "CompiledStateGraph[State, Task, State, State]"


class React:
    """The two nodes and the way between them."""

    def __init__(self, config: Config, model: Model, tools: Mapping[str, Tool]) -> None:
        self._config = config
        self._model = model
        self._tools = tools

    def graph(self, checkpoints: "BaseCheckpointSaver[Any] | None") -> Graph:
        """Ready to run; with checkpoints a session goes on where it was."""
        graph = StateGraph(State, context_schema=Task)
        graph.add_node("model", self.think)
        graph.add_node("tools", self.act)
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", _next, ["tools", END])
        graph.add_edge("tools", "model")
        compiled: Graph = graph.compile(checkpointer=checkpoints)
        return compiled

    async def think(self, state: State, runtime: Runtime[Task]) -> dict[str, Any]:
        """One call of the model; the last that there may be has no tools, so that it answers."""
        task = runtime.context
        task.budget.step()
        tools = [] if task.budget.is_last else list(self._tools.values())
        said, forgotten = await self._asked(state, task, tools)
        calls = said.message.get("tool_calls") or ()
        ended = bool(calls and task.budget.is_last and self._tools)
        if not tools and calls:
            del said.message["tool_calls"]  # it was not asked to
            calls = ()
        if not calls:
            task.finish = "length" if said.finish == "length" else "stop"
        task.over(
            Step(
                kind="model",
                name=self._config.model.name,
                step=task.budget.steps,
                ms=_ms(said.took_ns),
                ttft_ms=None if said.ttft_ns is None else _ms(said.ttft_ns),
                server_timing=said.server_timing,
                prompt_tokens=said.prompt_tokens,
                output_tokens=said.output_tokens,
                calls=len(calls),
            )
        )
        if ended:
            task.ended_by("steps")
        return {"messages": [said.message], "forgotten": forgotten}

    async def _asked(self, state: State, task: Task, tools: Sequence[Tool]) -> tuple[Said, int]:
        """What the model says, and how much of the session it was not shown: the older half, until it can read it.

        Calls that were refused for it are told once one was not: before, the client's answer may still be an error.
        """
        most = min(task.budget.tokens_left, task.max_tokens or task.budget.tokens_left)
        forgotten, refused = state.get("forgotten", 0), list[Step]()
        while True:
            messages = self._instructed(whole(remembered(state["messages"], forgotten)))
            began_ns = clock.now_ns()
            try:
                said = await self._model.ask(messages, tools, task, most)
            except asyncio.CancelledError:
                task.over(self._failed(task, began_ns, _CUT))
                raise
            except ModelError as e:
                if not e.is_full:
                    raise
                is_last = forgotten >= task.history
                note = "" if is_last else " It was asked again without the session's older messages."
                refused.append(self._failed(task, began_ns, f"{e}{note}"))
                if is_last:
                    if task.steps:  # so the stream has begun
                        _tell(task, refused)
                    raise
                forgotten = halved(state["messages"], forgotten, task.history)
            else:
                _tell(task, refused)
                return said, forgotten

    def _failed(self, task: Task, began_ns: int, error: str) -> Step:
        name, took_ms = self._config.model.name, _ms(clock.now_ns() - began_ns)
        return Step(kind="model", name=name, step=task.budget.steps, ok=False, ms=took_ms, error=error[:_ERROR_CHARS])

    async def act(self, state: State, runtime: Runtime[Task]) -> dict[str, list[Message]]:
        """All tools that the model wants, side by side; what goes wrong in one is its result."""
        calls = state["messages"][-1]["tool_calls"]
        results = await asyncio.gather(*(self._call(each, i, runtime.context) for i, each in enumerate(calls)))
        return {"messages": list(results)}

    async def _call(self, wanted: Mapping[str, Any], i: int, task: Task) -> Message:
        function, began_ns = wanted["function"], clock.now_ns()
        good, result, cut = False, _CUT, None
        try:
            good, result = await self._result(function, i)
        except asyncio.CancelledError as e:
            cut = e
        task.over(
            Step(
                kind="tool",
                name=function["name"][:64],
                step=task.budget.steps,
                ok=good,
                ms=_ms(clock.now_ns() - began_ns),
                input=function["arguments"][:_INPUT_CHARS],
                error=None if good else result[:_INPUT_CHARS],
            )
        )
        if cut is not None:
            raise cut
        return {"role": "tool", "tool_call_id": wanted["id"], "content": result}

    async def _result(self, function: Mapping[str, str], i: int) -> tuple[bool, str]:
        limits = self._config.limits
        if i >= limits.calls:
            return False, f"Error: at most {limits.calls} tools may be called at once."
        if (tool := self._tools.get(function["name"])) is None:
            return False, f"Error: there is no tool {function['name'][:64]!r}; there are {', '.join(self._tools)}."
        good, result = await call(tool, function["arguments"], limits.tool_s)
        return good, result if len(result) <= limits.tool_chars else result[: limits.tool_chars] + " … (cut)"

    def _instructed(self, messages: Sequence[Message]) -> list[Message]:
        own = self._config.instructions
        return [*([{"role": "system", "content": own}] if own else ()), *messages]


def _tell(task: Task, steps: Sequence[Step]) -> None:
    for step in steps:
        task.over(step)


def _next(state: State) -> str:
    return "tools" if state["messages"][-1].get("tool_calls") else END


def _ms(ns: int) -> float:
    return round(ns / 1e6, 3)
