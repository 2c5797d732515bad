"""The dashboard within Airflow: the pipelines of the streams whose DAGs a user may read."""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.utils.session import create_session
from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headgate.airflow.page.access import readable_dags
from headgate.airflow.page.address import page_address
from headgate.airflow.page.declared_streams import declared_streams
from headgate.declaration.files import project_folder
from headgate.errors import HeadgateError
from headgate.insight.dashboard.reading.shown import Declarations, Shown
from headgate.insight.dashboard.server.app import dashboard_app
from headgate.insight.dashboard.server.context import SCOPE, Context

PREFIX = "/dashboard"


def mount_dashboard(app: FastAPI) -> None:
    """Add the dashboard to the application of the page, whose dependencies ask for a login."""
    inner = dashboard_app(frames="'self'")
    declarations = Declarations()

    async def dashboard(request: Request, user: GetUserDep) -> Response:
        context = await run_in_threadpool(_context, user, declarations)
        return _Delegated(inner, request, context)

    for path in (PREFIX, PREFIX + "/{path:path}"):
        app.get(path)(dashboard)


class _Delegated(Response):
    """Lets the dashboard answer, as an application of its own below ``PREFIX``."""

    def __init__(self, inner: Any, request: Request, context: Context) -> None:
        super().__init__()
        self._inner, self._context = inner, context
        self._root = request.scope["root_path"] + PREFIX

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["path"] != self._root else f"{self._root}/"
        changed = {"root_path": self._root, "path": path, SCOPE: self._context}
        await self._inner({**scope, **changed}, receive, send)


def _context(user: Any, declarations: Declarations) -> Context:
    """What a user may see now; read again for each request."""
    with create_session(scoped=False) as session:
        streams = declared_streams(session, readable_dags(user, session))
    shown: dict[str, Shown] = {}
    problems: list[str] = []
    for each in streams:
        subject = each.subject
        try:
            found = declarations.shown(subject.stream.file, subject.root)
            shown.setdefault(found.name, found)
        except HeadgateError as error:
            problems.append(error.text(subject.stream.place))
    projects = tuple(dict.fromkeys(project_folder(s.pipeline.file) for s in shown.values()))
    return Context(
        shown,
        projects,
        page_address().rstrip("/") + PREFIX,
        problems=problems,
        home=("Streams", page_address()),
    )
