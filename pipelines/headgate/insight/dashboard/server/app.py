"""The application. Permissions are not a part of it: each request's scope has a
:class:`Context`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from headgate.commands import rendered
from headgate.errors import HeadgateError
from headgate.exit_codes import USAGE
from headgate.insight.dashboard.errors import NotFoundError, TooMuchError
from headgate.insight.dashboard.server import pages
from headgate.insight.dashboard.server.commits import Commits
from headgate.insight.dashboard.server.context import place_of
from headgate.insight.dashboard.server.pages import Headers
from headgate.insight.dashboard.server.projects import ProjectEndpoints
from headgate.insight.dashboard.server.questions import Desk
from headgate.insight.dashboard.server.tables import TableEndpoints

log = logging.getLogger(__name__)

PAGES = (
    "/",
    "/gold/{pipeline}/{table}",
    "/late/{pipeline}/{table}",
    "/quarantine/{pipeline}",
    "/quarantine/{pipeline}/{source}",
    "/rejected/{pipeline}/{table}",
    "/ledger/{pipeline}",
    "/board/{board}",
)


def routes(desk: Desk, commits: Commits) -> Sequence[BaseRoute]:
    """Every endpoint reads the context of its request (``context_of``), so a request without one is
    refused."""
    of_table, of_project = TableEndpoints(desk), ProjectEndpoints(desk, commits)
    gold = "/api/gold/{pipeline}/{table}"
    return [
        *(Route(path, pages.page) for path in PAGES),
        Route("/static/{name}", pages.file),
        Route("/api/overview", of_project.overview),
        Route("/api/events", of_project.events),
        Route("/api/ledger/{pipeline}", of_project.ledger),
        Route("/api/board/{board}", of_project.board),
        Route("/api/board/{board}/{chart}", of_project.chart),
        Route(gold, partial(of_table.gold, "about")),
        *(
            Route(f"{gold}/{question}", partial(of_table.gold, question))
            for question in ("series", "top", "rows", "values")
        ),
        Route(f"{gold}/rows.{{form}}", of_table.file),
        Route("/api/late/{pipeline}/{table}", of_table.late),
        Route("/api/quarantine/{pipeline}", of_table.quarantine),
        Route("/api/quarantine/{pipeline}/{source}", of_table.quarantine),
        Route("/api/rejected/{pipeline}/{table}", of_table.rejected),
    ]


def dashboard_app(
    desk: Desk | None = None,
    commits: Commits | None = None,
    *,
    more: Sequence[BaseRoute] = (),
    middleware: Sequence[Middleware] = (),
    frames: str = "'none'",
) -> Headers:
    """``more`` are routes of a login, ``middleware`` puts the context into requests. ``frames``
    says who may show the pages in a frame."""
    app = Starlette(
        routes=[*more, *routes(desk or Desk(), commits or Commits())],
        middleware=middleware,
        exception_handlers={
            HeadgateError: _failed,
            HTTPException: _refused,
            OSError: _unreadable,
            Exception: _broken,
        },
    )
    return Headers(app, frames)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    content = {"error": {"message": str(error.detail), "remedy": ""}}
    return JSONResponse(content, error.status_code, headers=error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HeadgateError)
    status = 400 if error.exit_code == USAGE else 503
    if isinstance(error, NotFoundError):
        status = 404
    if isinstance(error, TooMuchError):
        status = 422
    place = place_of(request)
    said = {"message": rendered(error.message, place), "remedy": rendered(error.remedy, place)}
    return JSONResponse({"error": said}, status)


async def _unreadable(request: Request, error: Exception) -> Response:
    log.warning("%s: %s", request.url.path, error)
    said = {"message": f"a file of the tables cannot be read: {error}", "remedy": ""}
    return JSONResponse({"error": said}, 503)


async def _broken(request: Request, error: Exception) -> Response:
    log.error("%s", request.url.path, exc_info=error)
    said = {"message": "the dashboard has failed", "remedy": "its log says why"}
    return JSONResponse({"error": said}, 500)
