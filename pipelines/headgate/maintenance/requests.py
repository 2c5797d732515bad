"""Asking the jobs of a running pipeline for maintenance, through documents.

There is one request, the newest; each job answers in a document of its own, and replaces it with
every table that is done. A job takes no notice of requests that are older than itself, so one is
made again, under its id, until all have answered.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from headgate.maintenance.report import Compacted, Report, Vacuumed
from headgate.storage.documents import read_document, write_document
from headgate.storage.layout import Layout

What = Literal["compact", "vacuum"]

_REQUEST = Layout.document("maintenance")


@dataclass(frozen=True)
class Request:
    """``keep_for`` is what vacuum leaves to readers."""

    id: str
    what: What
    keep_for: timedelta
    requested: datetime


@dataclass(frozen=True)
class Answer:
    """What a job has done of a request so far. ``error`` and its ``remedy`` say why it ended
    before it was through, with the exit code that it is."""

    id: str
    what: What
    is_done: bool = False
    reports: tuple[Report, ...] = ()
    error: str | None = None
    remedy: str = ""
    exit_code: int = 0

    def with_one(self, report: Report) -> Answer:
        return replace(self, reports=(*self.reports, report))


def new_request(what: What, keep_for: timedelta, now: datetime) -> Request:
    return Request(uuid.uuid4().hex, what, keep_for, now)


def ask(layout: Layout, request: Request) -> None:
    """Ask every running job of the pipeline to maintain the tables that it writes."""
    content = {
        "id": request.id,
        "what": request.what,
        "keep_for": request.keep_for.total_seconds(),
        "requested": request.requested.isoformat(),
    }
    write_document(layout.storage, _REQUEST, content)


def asked(layout: Layout) -> Request | None:
    """The newest request. Raises HeadgateError where the document is damaged."""
    document = read_document(layout.storage, _REQUEST)
    if document is None:
        return None
    return Request(
        id=document["id"],
        what=document["what"],
        keep_for=timedelta(seconds=document["keep_for"]),
        requested=datetime.fromisoformat(document["requested"]),
    )


def tell(layout: Layout, job: str, answer: Answer) -> None:
    """Replace the answer of a job."""
    content: dict[str, Any] = {
        **vars(answer),
        "reports": [report.document() for report in answer.reports],
    }
    write_document(layout.storage, _answer(job), content)


def told(layout: Layout, job: str, request: Request) -> Answer | None:
    """What a job has answered to a request, if it has."""
    document = read_document(layout.storage, _answer(job))
    if document is None or document["id"] != request.id:
        return None
    kind: type[Report] = Vacuumed if document["what"] == "vacuum" else Compacted
    return Answer(
        id=document["id"],
        what=document["what"],
        is_done=document["is_done"],
        reports=tuple(kind.of(report) for report in document["reports"]),
        error=document["error"],
        remedy=document["remedy"],
        exit_code=document["exit_code"],
    )


def _answer(job: str) -> str:
    return Layout.document(f"maintained-{job}")
