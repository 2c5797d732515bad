"""The document of one stream for the page."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from headgate.airflow.page.access import Access
from headgate.airflow.page.declared_streams import DeclaredStream
from headgate.airflow.page.pauses import Pause
from headgate.airflow.page.reports import StreamReport
from headgate.insight.status.report import status_document, tables_document
from headgate.supervision.launcher import LOCAL
from headgate.supervision.logs import run_log, spark_log


def answer(
    stream: DeclaredStream, report: StreamReport, access: Access, pause: Pause | None, now: datetime
) -> dict[str, Any]:
    """``status`` is None if it could not be read; ``error`` has the reason. ``age`` is the age of
    the report in seconds. ``pause`` is that of the DAG, without the name of the person if this user
    may not read the audit log; None if the DAG is on."""
    status, tables = report.status, report.tables
    if pause is not None and not access.may_read_audit:
        pause = replace(pause, who=None)
    return {
        "name": stream.subject.name,
        "file": stream.subject.file,
        "root": stream.subject.root,
        "dag_id": stream.dag_id,
        "task_id": stream.task_id,
        "map_index": stream.map_index,
        "pause": pause and asdict(pause) | {"at": pause.at and pause.at.isoformat()},
        "control": asdict(access) | {"may_act": access.why_not is None},
        "status": status and status_document(status),
        "tables": tables and tables_document(tables),
        "error": report.error,
        "age": report.at and (now - report.at).total_seconds(),
        "logs": _logs(stream, report),
    }


def _logs(stream: DeclaredStream, report: StreamReport) -> list[str]:
    """Paths on the driver's machine; only for the shipped launcher."""
    if stream.subject.launcher != LOCAL or report.status is None or not report.status.jobs:
        return []
    layout = stream.subject.stream.layout
    sparks = (spark_log(layout, job.job) for job in report.status.jobs)
    return [str(run_log(layout)), *map(str, sparks)]
