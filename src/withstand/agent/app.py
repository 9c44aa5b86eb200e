"""The routes: chat completions, models, health, metrics. Errors have OpenAI's form."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from withstand.agent import forms
from withstand.agent.asked import RefusedError, check_headers, read_request
from withstand.agent.config import Config
from withstand.agent.house import House, house_of
from withstand.agent.model import ModelError
from withstand.agent.reply import Reply, error_of

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def agent_app(config: Config, ready: Callable[[], None]) -> Starlette:
    """Its house is open between startup and shutdown; ``ready`` is called when it is."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        house: AbstractAsyncContextManager[House] = house_of(config)
        async with house as app.state.house:
            ready()
            yield

    return Starlette(
        routes=[
            Route("/v1/chat/completions", Completions),
            Route("/v1/models", _models),
            Route("/health", _health),
            Route("/metrics", _metrics),
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: _refused},
    )


class Completions:
    """``POST /v1/chat/completions``."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send

    def __await__(self) -> Any:
        """As Starlette calls an endpoint that is a class."""
        return self._answer().__await__()

    async def _answer(self) -> None:
        request = Request(self._scope, self._receive)
        house: House = request.app.state.house
        try:
            answer: Any = await _reply(request, house)
        except RefusedError as e:
            house.counts.requests["refused"] += 1
            answer = JSONResponse(forms.error(str(e), "invalid_request_error", e.code), e.status)
            if e.status == 503:
                answer.headers["retry-after"] = "1"
        await answer(self._scope, self._receive, self._send)


async def _reply(request: Request, house: House) -> Reply:
    limits = house.config.limits
    if request.method != "POST":
        raise RefusedError(405, "Send a POST.", "method_not_allowed")
    if house.counts.in_flight >= limits.requests:
        raise RefusedError(503, f"There are {limits.requests} tasks under way; try again later.", "overloaded")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limits.body_bytes:
            raise RefusedError(413, f"The request has more than {limits.body_bytes} bytes.", "too_large")
    headers = dict(request.headers)
    config = house.config
    return Reply(house, read_request(bytes(body), headers, config.name, bound=config.model.bound), headers)


async def _models(request: Request) -> Response:
    """The agent itself. If the model's server refuses the key, that is heard here, and not with the first question."""
    house: House = request.app.state.house
    headers = dict(request.headers)
    try:
        check_headers(headers)
        await house.check_key(headers)
    except (ModelError, RefusedError) as e:
        return JSONResponse(error_of(e), e.status)
    told = {"id": house.config.name, "object": "model", "created": 0, "owned_by": "withstand"}
    return JSONResponse({"object": "list", "data": [told]})


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _metrics(request: Request) -> Response:
    house: House = request.app.state.house
    return PlainTextResponse(house.counts.exposition(), media_type=_PROMETHEUS)


async def _refused(_: Request, e: Exception) -> Response:
    status = e.status_code if isinstance(e, HTTPException) else 500
    content = msgspec.json.encode(forms.error("There is nothing here.", "invalid_request_error", "not_found"))
    return Response(content, status, media_type="application/json")
