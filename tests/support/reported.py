"""What drivers report of the source ``b``, the only one of most pipelines in tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from headgate.driver.progress import JobProgress
from headgate.lake.control.driver_reports import Backlog, SourceProgress, SourceReport
from headgate.lake.control.ownership import LAYERS, Owner
from headgate.supervision.job_state import JobState

Job = TypeVar("Job", JobState, JobProgress)


def of_b(backlog: Backlog | None, **more: Any) -> dict[str, SourceReport]:
    return {"b": SourceReport(backlog, **more)}


def at_b(**fields: Any) -> dict[str, SourceProgress]:
    return {"b": SourceProgress(**fields)}


def with_source(job: Job, **fields: Any) -> Job:
    """The job, with other fields of its only source."""
    ((name, source),) = job.sources.items()
    return replace(job, sources={name: replace(source, **fields)})


NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
JOB = JobState(
    "fused",
    LAYERS,
    "running",
    Owner(1, "here", 0.0),
    epoch=3,
    since=NOON,
    renewed=NOON,
    sources=at_b(n=7),
)
"""A job of all layers that has read seven batches."""
