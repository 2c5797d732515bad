"""Documents that request maintenance from the jobs of a running pipeline, and their answers.

Only the newest request exists. It is for the jobs up to an epoch: those that were running when it
was created. Each job has a document for its answer, and replaces it after every table.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from headgate.history.maintenance.report import Compacted, MaintenanceReport, Vacuumed
from headgate.lake.storage.documents import (
    decoded,
    encoded,
    read_document,
    read_value,
    write_document,
)
from headgate.lake.storage.layout import Layout

MaintenanceKind = Literal["compact", "vacuum"]

_REQUEST = Layout.document("maintenance")


@dataclass(frozen=True)
class MaintenanceRequest:
    """``keep_for`` is how long vacuum keeps files for readers. ``epoch`` is the highest epoch of
    the jobs that the request is for."""

    id: str
    what: MaintenanceKind
    keep_for: timedelta
    epoch: int


@dataclass(frozen=True)
class MaintenanceAnswer:
    """What a job has done for a request so far. ``error``, ``remedy`` and ``exit_code`` say
    why it failed, if it did."""

    id: str
    what: MaintenanceKind
    is_done: bool = False
    reports: tuple[MaintenanceReport, ...] = ()
    error: str | None = None
    remedy: str = ""
    exit_code: int = 0

    def with_one(self, report: MaintenanceReport) -> MaintenanceAnswer:
        return replace(self, reports=(*self.reports, report))


def new_maintenance_request(
    what: MaintenanceKind, keep_for: timedelta, epoch: int
) -> MaintenanceRequest:
    return MaintenanceRequest(uuid.uuid4().hex, what, keep_for, epoch)


def request_maintenance(layout: Layout, request: MaintenanceRequest) -> None:
    """Ask every running job of the pipeline to maintain the tables that it writes."""
    write_document(layout.storage, _REQUEST, encoded(request))


def requested_maintenance(layout: Layout) -> MaintenanceRequest | None:
    """The newest request. Raises HeadgateError if the document is damaged."""
    return read_value(layout.storage, _REQUEST, MaintenanceRequest)


def write_answer(layout: Layout, job: str, answer: MaintenanceAnswer) -> None:
    """Replace the answer of a job."""
    write_document(layout.storage, _answer(job), encoded(answer))


def read_answer(layout: Layout, job: str, request: MaintenanceRequest) -> MaintenanceAnswer | None:
    """The answer of a job to a request; None if there is none yet."""
    document = read_document(layout.storage, _answer(job))
    if document is None or document["id"] != request.id:
        return None
    kind: type[MaintenanceReport] = Vacuumed if document["what"] == "vacuum" else Compacted
    return MaintenanceAnswer(
        id=document["id"],
        what=document["what"],
        is_done=document["is_done"],
        reports=tuple(decoded(report, kind) for report in document["reports"]),
        error=document["error"],
        remedy=document["remedy"],
        exit_code=document["exit_code"],
    )


def _answer(job: str) -> str:
    return Layout.document(f"maintained-{job}")
