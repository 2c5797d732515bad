"""The page's files in a real browser, with streams that a test invents: no Airflow, no tables."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any

from headgate.insight.status.report import (
    StreamStatus,
    TablesReport,
    status_document,
    tables_document,
)
from tests.support import browser
from tests.support.browser import NavigatedError

STATIC = resources.files("headgate.airflow.page") / "static"
TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".html": "text/html",
}
WITHIN = 30.0  # seconds until the page shows new streams


def stream(
    name: str, status: StreamStatus, tables: TablesReport | None = None, **more: Any
) -> dict[str, Any]:
    """A stream as the page receives it from an Airflow that lets everybody do everything."""
    control = {
        "dag_id": f"{name}__control",
        "actions": ["start", "stop", "restart", "savepoint", "start from savepoint"],
        "may_read_log": True,
        "may_read_audit": True,
        "why_not": None,
        "may_act": True,
    }
    document = {
        "name": name,
        "file": f"/project/pipelines/{name}.yml",
        "root": "/project/lake",
        "dag_id": f"{name}__stream",
        "task_id": "supervise",
        "map_index": -1,
        "pause": None,
        "control": control,
        "status": status_document(status),
        "tables": tables and tables_document(tables),
        "error": None,
        "age": 1.0,
        "logs": [],
    }
    return document | more


class Cards:
    """The cards of the open page ``page``."""

    def __init__(self, page: browser.Page, show: Callable[[datetime, list[Any]], None]) -> None:
        self.page = page
        self._show = show

    def show(self, now: datetime, *streams: dict[str, Any]) -> None:
        """Send these streams to the page. Returns when it shows them, and no other."""
        self._show(now, list(streams))
        with suppress(NavigatedError):
            self.page.run("window.isOld = true; location.reload()")
        names = sorted(each["name"] for each in streams)
        until = time.monotonic() + WITHIN
        while self._names() != names:
            assert time.monotonic() < until, self.page.run("document.body.innerText")
            time.sleep(0.05)

    def _names(self) -> list[str] | None:
        """The names on the reloaded page; None while the previous page is still open."""
        shown = "[...document.querySelectorAll('.card h2')].map((each) => each.textContent).sort()"
        with suppress(NavigatedError):
            found: list[str] | None = self.page.run(f"window.isOld ? null : {shown}")
            return found
        return None

    def text(self, selector: str) -> list[str]:
        """The text of every element that ``selector`` selects, in order."""
        script = (
            "[...document.querySelectorAll(%s)].map((each) => each.innerText ?? each.textContent)"
        )
        found: list[str] = self.page.run(script % json.dumps(selector))
        return found


@contextmanager
def shown_cards(profile: Path) -> Iterator[Cards]:
    """The page in a browser. At the end, none of its scripts may have failed."""
    document: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0].removeprefix("/headgate/")
            if path == "api/streams":
                self._answer(json.dumps(document).encode(), "application/json")
            else:
                file = STATIC / (path.removeprefix("static/") or "page.html")
                self._answer(file.read_bytes(), TYPES[Path(str(file)).suffix])

        def _answer(self, content: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    def show(now: datetime, streams: list[Any]) -> None:
        document.update(at=now.isoformat(), streams=streams)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    document.update(at="2026-01-01T00:00:00Z", streams=[])
    try:
        with browser.opened(f"http://127.0.0.1:{server.server_port}/headgate/", profile) as page:
            yield Cards(page, show)
            assert page.faults == []
    finally:
        server.shutdown()
        server.server_close()
