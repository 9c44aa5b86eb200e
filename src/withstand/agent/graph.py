"""The ReAct loop as a graph of LangGraph: the model, then its tools, then the model, until it wants none."""

import asyncio
import operator
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from withstand import clock
from withstand.agent.config import Config
from withstand.agent.model import Model
from withstand.agent.step import Step
from withstand.agent.task import Task
from withstand.agent.tools.tool import Tool, call
from withstand.agent.ways.way import Message, whole

_INPUT_CHARS = 200


class State(TypedDict):
    """What is kept of a session."""

    messages: Annotated[list[Message], operator.add]


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

    async def think(self, state: State, runtime: Runtime[Task]) -> dict[str, list[Message]]:
        """One call of the model; the last that there may be has no tools, so that it answers."""
        task = runtime.context
        task.budget.step()
        tools = [] if task.budget.is_last else list(self._tools.values())
        most = min(task.budget.tokens_left, task.max_tokens or task.budget.tokens_left)
        messages = self._instructed(whole(state["messages"]))
        said = await self._model.ask(messages, tools, task.say, task.headers, most)
        calls = said.message.get("tool_calls") or ()
        ended = bool(calls and task.budget.is_last and self._tools)
        if not tools and calls:
            del said.message["tool_calls"]  # it was not asked to
            calls = ()
        task.budget.spend(said.prompt_tokens, said.output_tokens)
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
                prompt_tokens=said.prompt_tokens if said.told else None,
                output_tokens=said.output_tokens if said.told else None,
                calls=len(calls),
            )
        )
        if ended:
            task.ended_by("steps")
        return {"messages": [said.message]}

    async def act(self, state: State, runtime: Runtime[Task]) -> dict[str, list[Message]]:
        """All tools that the model wants, side by side; what goes wrong in one is its result."""
        calls = state["messages"][-1]["tool_calls"]
        results = await asyncio.gather(*(self._call(each, i, runtime.context) for i, each in enumerate(calls)))
        return {"messages": list(results)}

    async def _call(self, wanted: Mapping[str, Any], i: int, task: Task) -> Message:
        function, began_ns = wanted["function"], clock.now_ns()
        good, result = await self._result(function, i)
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


def _next(state: State) -> str:
    return "tools" if state["messages"][-1].get("tool_calls") else END


def _ms(ns: int) -> float:
    return round(ns / 1e6, 3)
