"""Requests maintenance from running jobs, and waits for their answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta

from headgate.commands import pipeline_command
from headgate.errors import HeadgateError
from headgate.history.maintenance.requests import (
    MaintenanceAnswer,
    MaintenanceKind,
    new_maintenance_request,
    read_answer,
    request_maintenance,
    requested_maintenance,
)
from headgate.lake.storage.layout import Layout
from headgate.supervision.job_state import JobState, probe
from headgate.supervision.local import POLL_EVERY, NotAliveError

_AGAIN: Mapping[MaintenanceKind, str] = {
    "compact": pipeline_command("compact"),
    "vacuum": pipeline_command("vacuum"),
}
SILENT_FOR = 600.0  # seconds without an answer: a job reports each file or table much sooner


def maintain_running_jobs(
    layout: Layout,
    what: MaintenanceKind,
    keep_for: timedelta,
    jobs: Iterable[JobState],
    *,
    timeout: float = SILENT_FOR,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> Mapping[str, MaintenanceAnswer]:
    """Request maintenance from running jobs, wait for them, and return the last answer of each.
    ``jobs`` has at least one.

    Raises NotAliveError if a job ends or does not answer for ``timeout`` seconds, HeadgateError if
    another request replaces this one.
    """
    waiting = {job.job: job for job in jobs}
    answers: dict[str, MaintenanceAnswer] = {}
    request = new_maintenance_request(what, keep_for, max(job.epoch for job in waiting.values()))
    request_maintenance(layout, request)
    heard = clock()
    while waiting:
        for job in tuple(waiting):
            answer = read_answer(layout, job, request)
            if answer is not None and answer != answers.get(job):
                answers[job], heard = answer, clock()
            if answer is not None and answer.is_done:
                del waiting[job]
        if not waiting:
            break
        _require_alive(layout, waiting, what)
        if (newest := requested_maintenance(layout)) is not None and newest.id != request.id:
            raise HeadgateError(
                f"another process has requested {newest.what} meanwhile",
                remedy="wait, then try again",
            )
        if clock() - heard > timeout:
            raise _silent(next(iter(waiting.values())), timeout)
        wait(POLL_EVERY)
    return answers


def _require_alive(layout: Layout, waiting: Mapping[str, JobState], what: MaintenanceKind) -> None:
    alive = {(j.job, j.epoch) for j in probe(layout, datetime.now(UTC)) if j.is_alive}
    for job in waiting.values():
        if (job.job, job.epoch) not in alive:
            raise NotAliveError(
                f"the {job.job} job ended during {what}; its tables are intact",
                remedy=f"again: {_AGAIN[what]}",
            )


def _silent(job: JobState, timeout: float) -> NotAliveError:
    return NotAliveError(
        f"{job.owner} has not answered for {timeout:.0f} s; it may be in the middle of a batch",
        remedy=f"{pipeline_command('status')}, {pipeline_command('logs')}",
    )
