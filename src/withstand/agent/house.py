"""What all tasks share, and how one of them is run to its end."""

import asyncio
import secrets
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from langchain_core.runnables import RunnableConfig

from withstand.agent.asked import Asked, RefusedError, new_of
from withstand.agent.budget import Budget, SpentError
from withstand.agent.config import Config, api_key
from withstand.agent.counts import Counts
from withstand.agent.graph import Graph, React
from withstand.agent.model import Model, ModelError
from withstand.agent.sessions import BusyError, Sessions, StoreError, sessions_in, thread_of
from withstand.agent.step import Step
from withstand.agent.task import Task
from withstand.agent.tools.chest import tools_of
from withstand.agent.ways.way import Message

_GROWN = 2
"""Calls of the model: from the second on it is the task that has outgrown it, and not what the client sent."""

_NOT_KEPT = "The session does not keep this question."


class House:
    """Lives as long as the process."""

    def __init__(self, config: Config, model: Model, react: React, sessions: Sessions, counts: Counts) -> None:
        self.config = config
        self._model = model
        self.counts = counts
        self._sessions = sessions
        self._lasting: Graph = react.graph(sessions.saver)
        self._passing: Graph = react.graph(None)

    def task(self, headers: Mapping[str, str], asked: Asked, say: Callable[[str], None]) -> Task:
        """A new one."""

        def tell(step: Step) -> None:
            self.counts.step(step)

        id_ = headers.get("x-request-id") or secrets.token_hex(12)
        told = {**headers, "x-request-id": id_}
        return Task(
            id=id_,
            headers=told,
            budget=Budget(self.config.limits),
            say=say,
            tell=tell,
            max_tokens=asked.max_tokens,
            sampling=asked.sampling,
        )

    async def check_key(self, headers: Mapping[str, str]) -> None:
        """Whether the client may ask, where it is the model's server that knows.

        Raises:
            ModelError: he may not.
        """
        await self._model.check_key(headers)

    async def run(self, task: Task, asked: Asked) -> None:
        """To its end, or to a limit.

        Raises:
            ModelError: the model could not be had.
            RefusedError: the session is busy.
            StoreError: the session cannot be had.
        """
        thread = thread_of(asked.session, task.headers.get("authorization", "")) if asked.session else None
        try:
            with self._sessions.alone(thread) if thread else nullcontext():
                await self._within(task, asked.messages, thread)
        except BusyError:
            raise RefusedError(409, "The session has a task under way; wait for its end.", "session_busy") from None
        except sqlite3.Error as e:
            raise StoreError(e) from None

    async def _within(self, task: Task, messages: list[Message], thread: str | None) -> None:
        """A session keeps what was answered; of a task that failed, was cut or left it keeps nothing."""
        if thread is None:
            await self._bounded(task, self._passing.ainvoke({"messages": messages}, self._settings(), context=task))
            return
        before = await self._sessions.before(thread)
        task.history = before.messages
        messages = new_of(messages) if before.checkpoint else messages
        settings = self._settings() | {"configurable": {"thread_id": thread}}
        work = self._lasting.ainvoke({"messages": messages}, settings, context=task, durability="sync")
        answered = False
        try:
            answered = await self._bounded(task, work, _NOT_KEPT)
        finally:
            if not answered:
                await self._sessions.undo(thread, before)
        await self._sessions.tidy(thread)

    def _settings(self) -> RunnableConfig:
        return {"recursion_limit": 2 * self.config.limits.steps + 2}

    async def _bounded(self, task: Task, work: Coroutine[Any, Any, Any], note: str | None = None) -> bool:
        """Whether it came to its end; else a limit has ended it, and the task is told so with a ``note``."""
        try:
            async with asyncio.timeout(task.budget.seconds_left):
                await work
        except TimeoutError:
            task.ended_by("seconds", note)
        except SpentError as e:
            task.ended_by(str(e), note)
        except ModelError as e:
            if not e.is_full or task.budget.steps < _GROWN:
                raise
            task.ended_by("context", note)
        else:
            return True
        return False


@asynccontextmanager
async def house_of(config: Config) -> AsyncIterator[House]:
    """Open while the process serves.

    Raises:
        UsageError: a key, a tool or the sessions' file cannot be had.
    """
    tools = tools_of(config)
    model = Model(config.model, api_key(config.model), config.limits.seconds, config.limits.requests)
    try:
        async with sessions_in(config.sessions.path, config.sessions.keep) as sessions:
            yield House(config, model, React(config, model, tools), sessions, Counts(tools))
    finally:
        await model.close()
