"""The application: models, health, metrics, and the administration of engines. Its errors have OpenAI's form."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from withstand import __version__
from withstand.errors import UsageError, WithstandError
from withstand.gateway import refusals
from withstand.gateway.control import admin, mistakes, usage
from withstand.gateway.control.asking import Refused, administers, asks
from withstand.gateway.control.changes import fields_of
from withstand.gateway.control.crew import Crew
from withstand.gateway.control.guide import guide, of_engines
from withstand.gateway.house import House
from withstand.gateway.keys import Key
from withstand.gateway.refusals import RETRY_AFTER_S, Refusal
from withstand.gateway.reload import Reloader
from withstand.gateway.routes import ROUTES, Dialect

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_METHODS = "GET", "POST", "PATCH", "DELETE"
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class _Application(FastAPI):
    """Its description has the engines' routes too."""

    def openapi(self) -> dict[str, Any]:
        """The document, made once."""
        if self.openapi_schema is None:
            schema = super().openapi()
            schema["paths"] = of_engines() | schema["paths"]
        assert self.openapi_schema is not None
        return self.openapi_schema


class _Headed:
    """Has ``HEAD`` answered as ``GET``; that the body stays here is uvicorn's. Who waits at the end is told so."""

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:  # the gateway ends meanwhile
            await _answer(refusals.shutting_down(RETRY_AFTER_S))(scope, receive, send)


def control_app(house: House, crew: Crew, reloader: Reloader) -> FastAPI:
    """All routes that are not for an engine."""
    app = _Application(title="withstand gateway", version=__version__, docs_url=None, redoc_url=None)
    app.state.house = house
    app.state.reloader = reloader
    app.state.crew = crew
    app.add_middleware(_Headed)
    _add_errors(app)
    _add_models(app, house)
    _add_health(app, house, crew)
    app.include_router(admin.router)
    app.include_router(usage.router)
    app.include_router(usage.own)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(guide(app.openapi()))

    return app


def _add_models(app: FastAPI, house: House) -> None:
    def told(name: str, model: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": 0, "owned_by": "withstand", "root": model}

    @app.get("/v1/models")
    async def models(key: Annotated[Key, Depends(asks)]) -> dict[str, Any]:
        """Every name that may be asked for, aliases too; no engine is waited for."""
        names = [told(name, model.name) for name, model in house.roster.names() if key.may_use(model.name)]
        return {"object": "list", "data": names}

    @app.get("/v1/models/{name:path}")
    async def model(name: str, key: Annotated[Key, Depends(asks)]) -> dict[str, Any]:
        """One of them."""
        found = house.roster.by_name.get(name)
        if found is None or not key.may_use(found.name):
            raise Refused(refusals.unknown_model(name))
        return told(name, found.name)


def _add_health(app: FastAPI, house: House, crew: Crew) -> None:
    @app.get("/health")
    async def health() -> dict[str, str]:
        """The process lives."""
        return {"status": "ok"}

    @app.get("/ready")
    async def ready(response: Response) -> dict[str, Any]:
        """Whether it is worth sending requests here: not while it drains, nor without any engine."""
        now_s = house.now_s()
        models = {name: model.ready(now_s) for name, model in house.roster.models.items()}
        good = any(models.values()) and not house.draining
        response.status_code = 200 if good else 503
        return {"ready": good, "draining": house.draining, "models": models}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        """For Prometheus."""
        if not house.config.open_metrics:
            await administers(await asks(request))
        return Response(await crew.page(), media_type=_PROMETHEUS)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(Refused)
    async def refused(_: Request, e: Refused) -> Response:
        return _answer(e.refusal)

    @app.exception_handler(WithstandError)
    async def failed(_: Request, e: WithstandError) -> Response:
        told = refusals.bad_request if isinstance(e, UsageError) else refusals.failed
        return _answer(told(str(e)))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, e: RequestValidationError) -> Response:
        said = request.headers.get("content-type", "")
        if request.method != "GET" and "json" not in said and e.body is not None:
            message = "The body must be JSON, with the header content-type: application/json."
            return _answer(refusals.bad_request(message, status=415))
        return _answer(refusals.bad_request(mistakes.told(e.errors(), fields_of(request.method)), status=422))

    @app.exception_handler(HTTPException)
    async def http(request: Request, e: HTTPException) -> Response:
        if e.status_code == 400:
            return _answer(refusals.bad_request(mistakes.unread(e.__cause__)))
        if e.status_code not in {404, 405}:
            return _answer(refusals.bad_request(f"{e.detail}.", status=e.status_code))
        path = request.scope["path"]
        if methods := _methods_at(request):
            allowed = ", ".join((*methods, "HEAD") if "GET" in methods else methods)
            return _answer(refusals.bad_request(mistakes.otherwise(path, methods), status=405), {"allow": allowed})
        if path in ROUTES:
            message = f"{path} is found by its plain letters alone; ask for it without % codes, and without #."
            return _answer(refusals.bad_request(message, status=404))
        known = [path for path in app.openapi()["paths"] if "{" not in path]
        return _answer(refusals.bad_request(mistakes.astray(path, [*known, "/docs"]), status=404))


def _methods_at(request: Request) -> list[str]:
    """By which something may be asked for there, if by any."""
    scope = request.scope
    if scope["raw_path"].decode("ascii", "replace") in ROUTES and scope["method"] != "POST":
        return ["POST"]
    routes = request.app.routes
    return [
        method
        for method in _METHODS
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in routes)
    ]


def _answer(refusal: Refusal, headers: dict[str, str] | None = None) -> Response:
    body = refusals.body_of(refusal, Dialect.OPENAI)
    return Response(body, refusal.status, headers, media_type=JSONResponse.media_type)
