"""Asks the running jobs of a pipeline for maintenance, and waits for their answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from headgate.commands import pipeline_command
from headgate.errors import HeadgateError
from headgate.maintenance.requests import Answer, What, ask, asked, new_request, told
from headgate.storage.layout import Layout
from headgate.supervision.job_state import JobState, probe
from headgate.supervision.local import ASK_AGAIN, POLL_EVERY, NotAliveError

_AGAIN: Mapping[What, str] = {
    "compact": pipeline_command("compact"),
    "vacuum": pipeline_command("vacuum"),
}
SILENT_FOR = 600.0  # seconds without a word: a job goes on to its next file or table much sooner


def maintain(
    layout: Layout,
    what: What,
    keep_for: timedelta,
    jobs: Iterable[JobState],
    *,
    timeout: float = SILENT_FOR,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> Mapping[str, Answer]:
    """Ask some running jobs, and return what each has answered in the end.

    Raises NotAliveError if one ends meanwhile or says nothing for ``timeout`` seconds,
    HeadgateError if somebody else asks for something.
    """
    waiting = {job.job: job for job in jobs}
    answers: dict[str, Answer] = {}
    request = new_request(what, keep_for, datetime.now(UTC))
    ask(layout, request)
    heard, asked_at = clock(), clock()
    while waiting:
        for job in tuple(waiting):
            answer = told(layout, job, request)
            if answer is not None and answer != answers.get(job):
                answers[job], heard = answer, clock()
            if answer is not None and answer.is_done:
                del waiting[job]
        if not waiting:
            break
        _require_alive(layout, waiting, what)
        if (newest := asked(layout)) is not None and newest.id != request.id:
            raise HeadgateError(
                f"somebody else has asked for {newest.what} meanwhile", remedy="wait, then again"
            )
        if clock() - heard > timeout:
            raise _silent(next(iter(waiting.values())), timeout)
        if clock() - asked_at >= ASK_AGAIN and not waiting.keys() <= answers.keys():
            asked_at = clock()
            ask(layout, replace(request, requested=datetime.now(UTC)))
        wait(POLL_EVERY)
    return answers


def _require_alive(layout: Layout, waiting: Mapping[str, JobState], what: What) -> None:
    alive = {(j.job, j.epoch) for j in probe(layout, datetime.now(UTC)) if j.is_alive}
    for job in waiting.values():
        if (job.job, job.epoch) not in alive:
            raise NotAliveError(
                f"the {job.job} job ended before it was through with {what}; its tables are as "
                "whole as before",
                remedy=f"again: {_AGAIN[what]}",
            )


def _silent(job: JobState, timeout: float) -> NotAliveError:
    return NotAliveError(
        f"process {job.owner.pid} on {job.owner.host} has said nothing for {timeout:.0f} s; it "
        "may be in the middle of a batch",
        remedy=f"{pipeline_command('status')}, {pipeline_command('logs')}",
    )
