"""The page's routes. All need a login, and all only read: buttons use Airflow's public API with the
session of the user."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, get_user, requires_access_dag
from airflow.utils.session import create_session
from fastapi import Depends, FastAPI, HTTPException, Response
from fastapi.responses import FileResponse, HTMLResponse, PlainTextResponse

from headgate.airflow.error_text import error_text
from headgate.airflow.page.access import Access, access, readable_dags
from headgate.airflow.page.answer import answer
from headgate.airflow.page.dashboard import mount_dashboard
from headgate.airflow.page.declared_streams import DeclaredStream, declared_streams
from headgate.airflow.page.pauses import Pause, pauses
from headgate.airflow.page.reports import Reports, StreamAddress
from headgate.declaration.load import load
from headgate.errors import HeadgateError
from headgate.insight.quality.findings import findings
from headgate.insight.quality.page import STYLE
from headgate.insight.quality.page import page as quality_page
from headgate.supervision.launcher import LogOf, launcher_of

_STATIC = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_LINES = 50
_LINES_OF_SPARK = 1_000
_HEADERS = {
    # The page shows text from files and tables: none of it may become a script.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'",
    "Cache-Control": "no-cache",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}

_QUALITY_STYLE = b64encode(sha256(STYLE.encode()).digest()).decode()
_QUALITY_HEADERS = _HEADERS | {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_QUALITY_STYLE}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "Cache-Control": "no-store",
}


def page_app(reports: Reports | None = None) -> FastAPI:
    """``reports`` are kept for as long as the app lives."""
    kept = reports or Reports()
    # No documentation routes: they would need no login.
    app = FastAPI(
        title="Headgate",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(get_user)],
    )
    app.get("/")(_page)
    app.get("/static/{name}")(_file)
    app.get("/api/streams")(partial(_streams, kept))
    of_one = "/api/streams/{dag_id}/{task_id}"
    may_read = [Depends(requires_access_dag("GET", DagAccessEntity.TASK_LOGS))]
    may_see = [Depends(requires_access_dag("GET"))]
    app.get(f"{of_one}/quality", dependencies=may_see, response_class=HTMLResponse)(_quality)
    app.get(f"{of_one}/log", dependencies=may_read)(_log)
    app.get(f"{of_one}/spark-log", dependencies=may_read, response_class=PlainTextResponse)(
        _spark_log
    )
    mount_dashboard(app)
    return app


def _page() -> FileResponse:
    return FileResponse(_STATIC / "page.html", media_type="text/html", headers=_HEADERS)


def _file(name: str) -> FileResponse:
    file = next((file for file in _STATIC.iterdir() if file.name == name), None)
    if file is None or file.suffix not in _TYPES:
        raise HTTPException(404, "there is no such file")
    return FileResponse(file, media_type=_TYPES[file.suffix], headers=_HEADERS)


def _streams(
    kept: Reports, user: GetUserDep, response: Response, dag_id: str | None = None
) -> dict[str, Any]:
    """Every stream of the DAGs that this user may read, or of one of them."""
    response.headers["Cache-Control"] = "no-store"
    found = _visible(user, dag_id)
    reports = kept.of([each.subject for each, _, _ in found])
    now = datetime.now(UTC)
    return {
        "at": now.isoformat(),
        "streams": [
            answer(each, report, may, pause, now)
            for (each, may, pause), report in zip(found, reports, strict=True)
        ],
    }


def _visible(user: Any, dag_id: str | None) -> list[tuple[DeclaredStream, Access, Pause | None]]:
    """The streams that a user may see. The session ends here: connections to Airflow's database are
    few, and none may stay open while tables are read."""
    with create_session(scoped=False) as session:
        readable = readable_dags(user, session)
        wanted = readable if dag_id is None else readable & {dag_id}
        found = declared_streams(session, wanted)
        paused = pauses(session, {each.dag_id for each in found if each.is_paused})
        return [
            (each, access(each, user, readable, session), paused.get(each.dag_id)) for each in found
        ]


MapIndex = Annotated[int, "of a mapped task, as Airflow counts them"]


def _log(dag_id: str, task_id: str, map_index: MapIndex = -1) -> dict[str, list[str]]:
    """The end of the driver's log."""
    return {"lines": _lines((dag_id, task_id, map_index), "driver", _LINES)}


def _spark_log(dag_id: str, task_id: str, map_index: MapIndex = -1) -> PlainTextResponse:
    """The end of Spark's log."""
    lines = _lines((dag_id, task_id, map_index), "spark", _LINES_OF_SPARK)
    return PlainTextResponse("\n".join([*lines, ""]), headers=_HEADERS)


def _lines(task: tuple[str, str, int], of: LogOf, lines: int) -> list[str]:
    """The end of a log. Raises HTTPException if there is no such stream, or its log cannot be
    read."""
    subject = _subject(task)
    try:
        return launcher_of(subject.launcher).logs(subject.stream, lines, of)
    except (HeadgateError, OSError) as error:
        text = error_text(error, subject.stream.place)
        raise HTTPException(503, f"its log cannot be read: {text}") from error


def _quality(dag_id: str, task_id: str, map_index: MapIndex = -1) -> HTMLResponse:
    """The report about the rules of a stream, without values of rows."""
    subject = _subject((dag_id, task_id, map_index))
    try:
        declared = load(subject.stream.file, needs_secrets=False)
        found = findings(subject.stream.layout, declared, datetime.now(UTC))
    except (HeadgateError, OSError) as error:
        text = error_text(error, subject.stream.place)
        raise HTTPException(503, f"its tables cannot be read: {text}") from error
    return HTMLResponse(quality_page(found, show_values=False), headers=_QUALITY_HEADERS)


def _subject(task: tuple[str, str, int]) -> StreamAddress:
    """The stream of a task. Raises HTTPException if there is no such stream."""
    with create_session(scoped=False) as session:
        found = declared_streams(session, {task[0]})
    for each in found:
        if (each.dag_id, each.task_id, each.map_index) == task:
            return each.subject
    raise HTTPException(404, "there is no such stream")
