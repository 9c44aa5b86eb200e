"""An answer on its way: the task on one side, its client on the other. If the client leaves, the task is cancelled."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from withstand import clock
from withstand.agent import forms
from withstand.agent.asked import Asked, RefusedError
from withstand.agent.forms import Forms
from withstand.agent.house import House
from withstand.agent.model import ModelError
from withstand.agent.sessions import StoreError
from withstand.agent.step import Step
from withstand.agent.task import Task

_STREAM = "text/event-stream; charset=utf-8"
_JSON = "application/json"
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    429: "rate_limit_error",
}
"""As the gateway has them."""


class Reply:
    """An ASGI application for one request."""

    def __init__(self, house: House, asked: Asked, headers: dict[str, str]) -> None:
        self._house = house
        self._asked = asked
        self._began_ns = clock.now_ns()
        self._said: list[str] = []
        self._events: asyncio.Queue[bytes | None] = asyncio.Queue()
        """What goes out in a stream; None = that was all."""
        self._outcome = "client_left"
        self._task: Task = house.task(headers, asked, self._say)
        self._forms = Forms(self._task.id, house.config.name, int(clock.wall_s()))
        count: Callable[[Step], None] = self._task.tell

        def tell(step: Step) -> None:
            count(step)
            self._events.put_nowait(self._forms.step(step))

        self._task.tell = tell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  ASGI's signature
        """Answer; whatever happens, nothing of it goes on afterwards."""
        counts = self._house.counts
        counts.in_flight += 1
        answer = asyncio.create_task(self._stream(send) if self._asked.stream else self._whole(send))
        left = asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait({answer, left}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            answer.cancel()
            left.cancel()
            await asyncio.gather(answer, left, return_exceptions=True)
            counts.in_flight -= 1
            counts.requests[self._outcome] += 1
            counts.task.add((clock.now_ns() - self._began_ns) / 1e9)
            counts.tokens["prompt"] += self._task.budget.prompt_tokens
            counts.tokens["output"] += self._task.budget.output_tokens
        if answer.done() and not answer.cancelled() and (error := answer.exception()):
            raise error

    def _say(self, text: str) -> None:
        self._said.append(text)
        self._events.put_nowait(self._forms.text(text))

    async def _whole(self, send: Send) -> None:
        try:
            await self._house.run(self._task, self._asked)
        except Exception as e:  # noqa: BLE001  a client of OpenAI's API gets an error of its form, whatever happens
            with self._failing(e):
                await self._refuse(e, send)
            return
        self._outcome = self._good()
        task = self._task
        body = self._forms.whole("".join(self._said), task.finish, task.budget, task.steps)
        await self._start(send, 200, _JSON, ("server-timing", self._timing()))
        await send({"type": "http.response.body", "body": body})

    async def _stream(self, send: Send) -> None:
        """The head waits for the first event: an error before it has a status of its own."""
        work = asyncio.create_task(self._work())
        try:
            event = await self._events.get()
            if event is None:
                await self._end(work, send, begun=False)
                return
            await self._start(send, 200, _STREAM, ("cache-control", "no-cache"), ("x-accel-buffering", "no"))
            await _piece(send, self._forms.role())
            while event is not None:
                await _piece(send, event)
                event = await self._events.get()
            await self._end(work, send, begun=True)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _work(self) -> None:
        try:
            await self._house.run(self._task, self._asked)
        finally:
            self._events.put_nowait(None)

    async def _end(self, work: "asyncio.Task[None]", send: Send, *, begun: bool) -> None:
        try:
            await work
        except Exception as e:  # noqa: BLE001  as above
            with self._failing(e):
                if begun:
                    await _piece(send, forms.error_event(error_of(e)))
                    await _piece(send, b"", more=False)
                else:
                    await self._refuse(e, send)
            return
        self._outcome = self._good()
        await _piece(send, self._forms.end(self._task.finish, self._timing()))
        if self._asked.include_usage:
            await _piece(send, self._forms.usage(self._task.budget))
        await _piece(send, forms.DONE, more=False)

    def _timing(self) -> str:
        all_ms = (clock.now_ns() - self._began_ns) / 1e6
        return forms.server_timing(self._task.ms("model"), self._task.ms("tool"), all_ms)

    def _good(self) -> str:
        return "limit" if any(step.kind == "limit" for step in self._task.steps) else "ok"

    @contextlib.contextmanager
    def _failing(self, e: Exception) -> Iterator[None]:
        """The outcome; what nobody foresaw goes on to stderr once the client has been told."""
        self._outcome = {ModelError: "model_failed", RefusedError: "refused"}.get(type(e), "failed")
        if isinstance(e, ModelError) and e.status == 400:
            self._outcome = "refused"
        yield
        if not isinstance(e, ModelError | RefusedError | StoreError):
            raise e

    async def _refuse(self, e: Exception, send: Send) -> None:
        status = e.status if isinstance(e, ModelError | RefusedError) else 503 if isinstance(e, StoreError) else 500
        retry_after = e.retry_after if isinstance(e, ModelError) else None
        more = [("retry-after", retry_after)] if retry_after else []
        await self._start(send, status, _JSON, *more)
        await send({"type": "http.response.body", "body": msgspec.json.encode(error_of(e))})

    async def _start(self, send: Send, status: int, kind: str, *more: tuple[str, str]) -> None:
        told = [("content-type", kind), ("x-request-id", self._task.id), *more]
        if self._asked.ignored:
            told.append(("x-withstand-ignored", ", ".join(self._asked.ignored)))
        headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in told]
        await send({"type": "http.response.start", "status": status, "headers": headers})


def error_of(e: Exception) -> dict[str, Any]:
    """In OpenAI's form."""
    match e:
        case RefusedError():
            return forms.error(str(e), "invalid_request_error", e.code)
        case ModelError():
            return forms.error(str(e), _KINDS.get(e.status, "server_error"), e.code)
        case StoreError():
            return forms.error(str(e), "server_error", "sessions_failed")
    return forms.error("The agent failed; its log says why.", "server_error", "agent_failed")


async def _piece(send: Send, data: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
