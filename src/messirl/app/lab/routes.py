"""Routes of the page: static files, the script of Plotly, and requests that the worker answers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import plotly
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from messirl.app.lab.job_queue import RequestQueue
from messirl.app.lab.requests import PAGE, WORDS, RequestError, parse_fit_request
from messirl.app.lab.security import SecurityMiddleware

STATIC = Path(__file__).parent / "static"
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
JSON = "application/json"


def make_app(folders: list[str], hosts: frozenset[str], *, numbers: bool = False) -> SecurityMiddleware:
    """Create the application behind its guard. folders : folders that a page may open; hosts, numbers : see Guard."""
    desk = RequestQueue(folders)

    async def fit(request: Request) -> Response:
        try:
            ask = parse_fit_request(await request.body())
        except RequestError as error:
            return _answer(422, str(error))
        return await _asked(request, desk, f"fit {ask.page}", {"what": "fit", "ask": asdict(ask)})

    def reading(what: str) -> Any:
        async def read(request: Request) -> Response:
            key, page = request.query_params.get("key", ""), request.query_params.get("page", "0")
            if len(key) > WORDS["scene"] or not PAGE.fullmatch(page):
                return _answer(422, "key or page is invalid")
            return await _asked(request, desk, f"{what} {page}", {"what": what, "key": key})

        return read

    async def script(request: Request) -> Response:
        return FileResponse(PLOTLY, media_type="text/javascript")

    async def styles(request: Request) -> Response:
        return Response(json.dumps(inline_styles()), media_type=JSON)

    async def index(request: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await desk.open()
        try:
            yield
        finally:
            await desk.close()

    routes = [
        Route("/", index),
        Route("/plotly.js", script),
        Route("/plotly-styles", styles),
        Route("/api/fit", fit, methods=["POST"]),
        *(Route(f"/api/{what}", reading(what)) for what in ("catalogue", "scene", "results", "fitted")),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return SecurityMiddleware(Starlette(routes=routes, lifespan=lifespan), hosts, numbers=numbers)


@cache
def inline_styles() -> list[str]:
    """Return the ids of style elements that Plotly's script adds unless they exist; the page adds dummies with them.

    The styles are for maps of the world, which are not drawn here, and the security policy would block them with an
    error.
    """
    return sorted(set(re.findall(r'getElementById\("([0-9a-f]{64})"\)', PLOTLY.read_text(encoding="utf-8"))))


async def _asked(request: Request, desk: RequestQueue, page: str, message: dict[str, Any]) -> Response:
    """Return the answer of the worker; if the page is closed meanwhile, its work is stopped."""
    answer, left = asyncio.create_task(desk.ask(page, message)), asyncio.create_task(_left(request))
    try:
        await asyncio.wait((answer, left), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            return _answer(503, "the page was closed")
        status, body = answer.result()
        return Response(body, status, media_type=JSON)
    finally:
        answer.cancel()
        left.cancel()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _answer(status: int, why: str) -> Response:
    return Response(json.dumps({"status": status, "error": why}), status, media_type=JSON)
