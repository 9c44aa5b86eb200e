"""The routes: pages that are shipped, the list and its details as JSON, live streams, and what is made when asked for.

A folder's own pages come with a policy that takes their origin from them; see ``guard``.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from withstand.report.html_page import asset
from withstand.report.json import finite
from withstand.ui.guard import SANDBOXED, Guard
from withstand.ui.hub import Follow, Hub, events
from withstand.ui.library import Library
from withstand.ui.maker import RECIPES, Maker, NotMadeError
from withstand.ui.reach import PAGE_BYTES_MAX, OutOfReachError, read
from withstand.ui.walk import Place

_ASKED_BYTES_MAX = 65_536
_SIDES_MAX = 20
_HTML = "text/html; charset=utf-8"
_ASSETS = {
    "icon.svg": "image/svg+xml",
    "ui.css": "text/css",
    "common.js": "text/javascript",
    "list.js": "text/javascript",
    "looks.js": "text/javascript",
    "run.js": "text/javascript",
}


class _Wish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of what asks for something to be made."""

    what: str
    ids: tuple[str, ...]


class Site:
    """All of it, around one library."""

    def __init__(self, library: Library, made: Path, follow: Follow) -> None:
        self._library = library
        self._folder = made
        self._hub = Hub(follow)
        self._maker: Maker | None = None

    def app(self) -> Starlette:
        """What the server calls."""
        routes = [
            Route("/", self._list),
            Route("/run/{id}", self._run),
            Route("/assets/{name}", _asset),
            Route("/api/runs", self._runs),
            Route("/api/runs/{id}", self._detail),
            Route("/api/runs/{id}/live", self._live),
            Route("/api/make", self._make, methods=["POST"]),
            Route("/page/{id}/{name}", self._page),
            Route("/made/{name}", self._made),
        ]
        return Starlette(
            routes=routes,
            middleware=[Middleware(Guard)],
            exception_handlers={HTTPException: _refused},
            lifespan=self._life,
        )

    def stop(self) -> None:
        """Streams end, and what is being made is given up. For a signal's handler in the loop's thread."""
        self._hub.stop()
        if self._maker:
            self._maker.close()

    @asynccontextmanager
    async def _life(self, _app: Starlette) -> AsyncIterator[None]:
        self._maker = Maker(self._folder)
        yield
        self.stop()

    async def _list(self, _request: Request) -> Response:
        return Response(_shipped("list.html"), media_type=_HTML)

    async def _run(self, request: Request) -> Response:
        await self._place(request)
        return Response(_shipped("run.html"), media_type=_HTML)

    async def _runs(self, _request: Request) -> Response:
        return _json(await run_in_threadpool(self._library.look))

    async def _detail(self, request: Request) -> Response:
        detail = await run_in_threadpool(self._library.detail, request.path_params["id"])
        if detail is None:
            raise HTTPException(404, "There is nothing of this name any more.")
        return _json(detail)

    async def _live(self, request: Request) -> Response:
        place = await self._place(request)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        course = self._hub.course(place.path)
        if course is None:
            raise HTTPException(503, "Too many pages follow runs at the moment; close some.")
        return StreamingResponse(events(course), media_type="text/event-stream")

    async def _make(self, request: Request) -> Response:
        wish = await _wish(request)
        places = [await run_in_threadpool(self._library.place, id_) for id_ in wish.ids]
        assert self._maker
        try:
            return _json({"url": f"/made/{await self._maker.make(wish.what, _known(places))}"})
        except NotMadeError as e:
            raise HTTPException(422, str(e)) from None

    async def _page(self, request: Request) -> Response:
        """As it lies in the folder: by its own name, so that pages side by side find each other."""
        place, name = await self._place(request), request.path_params["name"]
        if name not in {place.page, place.board}:
            raise HTTPException(404, "There is no such page in this folder.")
        try:
            data = await run_in_threadpool(read, place.path / name, self._library.root, PAGE_BYTES_MAX)
        except OutOfReachError as e:
            raise HTTPException(404, str(e)) from None
        return Response(data, media_type=_HTML, headers={"content-security-policy": SANDBOXED})

    async def _made(self, request: Request) -> Response:
        name = request.path_params["name"]
        found = self._maker.path_of(name) if self._maker else None
        if found is None:
            raise HTTPException(404, "This has to be made again: go back, and ask for it.")
        path, recipe = found
        headers = {"content-security-policy": SANDBOXED}
        filename = None if recipe.form == "html" else f"withstand-{name}{recipe.suffix}"
        return FileResponse(path, media_type=recipe.media_type, headers=headers, filename=filename)

    async def _place(self, request: Request) -> Place:
        place = await run_in_threadpool(self._library.place, request.path_params["id"])
        if place is None:
            raise HTTPException(404, "There is nothing of this name any more.")
        return place


async def _wish(request: Request) -> _Wish:
    """What is asked for.

    Raises:
        HTTPException: nobody can know what is meant.
    """
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _ASKED_BYTES_MAX:
            raise HTTPException(413, "That is more than can be meant.")
    try:
        wish = msgspec.json.decode(body, type=_Wish)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
        raise HTTPException(400, f"It is not understood: {e}.") from None
    problem = _why_not(wish)
    if problem:
        raise HTTPException(400, problem)
    return wish


def _why_not(wish: _Wish) -> str | None:
    if wish.what == "comparison":
        return None if 2 <= len(wish.ids) <= _SIDES_MAX else f"Tick two to {_SIDES_MAX} lines to compare."
    if wish.what not in RECIPES:
        return f"Nothing of the name {wish.what} can be made."
    return None if len(wish.ids) == 1 else "Name one line."


def _known(places: Sequence[Place | None]) -> list[Place]:
    known = [place for place in places if place]
    if len(known) < len(places):
        raise HTTPException(404, "One of these is not there any more.")
    return known


async def _refused(_request: Request, e: Exception) -> Response:
    """One sentence, as the page shows it."""
    assert isinstance(e, HTTPException)
    return Response(msgspec.json.encode({"error": e.detail}), e.status_code, media_type="application/json")


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name == "page.css":
        return Response(asset(name), media_type="text/css")
    if name not in _ASSETS:
        raise HTTPException(404, "There is no such file.")
    return Response(_shipped(name), media_type=_ASSETS[name])


@cache
def _shipped(name: str) -> str:
    return resources.files("withstand.ui").joinpath("assets", name).read_text("utf-8")


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(finite(msgspec.to_builtins(value))), media_type="application/json")
