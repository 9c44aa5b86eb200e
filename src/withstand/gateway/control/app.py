"""The application: models, health, metrics, and the administration of engines. Its errors have OpenAI's form."""

from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException

from withstand import __version__
from withstand.errors import UsageError
from withstand.gateway import refusals
from withstand.gateway.control import admin, usage
from withstand.gateway.control.asking import Refused, asks
from withstand.gateway.control.crew import Crew
from withstand.gateway.house import House
from withstand.gateway.keys import Key
from withstand.gateway.refusals import Refusal
from withstand.gateway.reload import Reloader
from withstand.gateway.routes import Dialect

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def control_app(house: House, crew: Crew, reloader: Reloader) -> FastAPI:
    """All routes that are not for an engine."""
    app = FastAPI(title="withstand gateway", version=__version__, redoc_url=None)
    app.state.house = house
    app.state.reloader = reloader
    app.state.crew = crew
    _add_errors(app)
    _add_models(app, house)
    _add_health(app, house, crew)
    app.include_router(admin.router)
    app.include_router(usage.router)
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
    async def metrics() -> Response:
        """For Prometheus."""
        return Response(await crew.page(), media_type=_PROMETHEUS)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(Refused)
    async def refused(_: Request, e: Refused) -> Response:
        return _answer(e.refusal)

    @app.exception_handler(UsageError)
    async def misused(_: Request, e: UsageError) -> Response:
        return _answer(refusals.bad_request(str(e)))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, e: RequestValidationError) -> Response:
        told = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in e.errors())
        return _answer(refusals.bad_request(f"The request is wrong: {told}.", status=422))

    @app.exception_handler(HTTPException)
    async def http(_: Request, e: HTTPException) -> Response:
        return _answer(refusals.bad_request(f"{e.detail}.", status=e.status_code))


def _answer(refusal: Refusal) -> Response:
    return Response(refusals.body_of(refusal, Dialect.OPENAI), refusal.status, media_type=JSONResponse.media_type)
