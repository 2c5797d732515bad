"""Reads the status of a stream. Nothing here starts a JVM or reads a data file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from headgate.commands import Place
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.flow.gates.documents import holds
from headgate.history.savepoints.store import savepoints
from headgate.insight.final_periods.finality import final_up_to
from headgate.insight.ledger import balance
from headgate.insight.status.batch_times import BatchTime, batch_times
from headgate.insight.status.freshness import freshness
from headgate.insight.status.past import past
from headgate.insight.status.report import Account, Notice, StreamStatus, TablesReport
from headgate.insight.status.set_aside import set_aside
from headgate.lake.control.driver_reports import Failure, last_failure
from headgate.lake.control.driver_requests import paused_since, stop_asked
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.operation import Operation
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.snapshot import TablePosition, head_table
from headgate.lake.tables.table import Table
from headgate.supervision.job_state import JobState, how_ended
from headgate.supervision.supervisor import StreamCondition, observe

BATCHES = 60
STUCK_AFTER = timedelta(minutes=15)
"""The default of supervisors."""

_T = TypeVar("_T")


def stream_status(layout: Layout, jobs: Sequence[JobState], now: datetime) -> StreamStatus:
    """The status of the stream of ``jobs``. Raises HeadgateError if a document is damaged."""
    # No earlier observation is needed: each job reports its last progress.
    last_progress = max((job.last_progress for job in jobs), default=now)
    asked, paused = stop_asked(layout), paused_since(layout)
    bronze = next((job for job in jobs if "bronze" in job.layers), None)
    failure = None if any(job.is_alive for job in jobs) else last_failure(layout)
    first = observe(jobs, last_progress, None, stop_asked=asked, stuck_after=STUCK_AFTER)
    seen = observe(jobs, now, first, stop_asked=asked, stuck_after=STUCK_AFTER, failure=failure)
    ended = how_ended(jobs, asked, failure)
    return StreamStatus(
        condition=seen.condition,
        since=_since(seen.condition, jobs, paused, failure),
        restarts=max((job.restarts for job in jobs), default=0),
        operation=next((job.operation for job in jobs if job.operation), None),
        n=bronze.n if bronze else None,
        rows=bronze.rows if bronze else None,
        seconds=bronze.seconds if bronze else None,
        backlog=bronze.backlog if bronze else None,
        clock=bronze.watermark if bronze else None,
        level=min((job.updated for job in jobs if job.updated), default=None),
        trouble=next((job.trouble for job in jobs if job.trouble and job.is_alive), None),
        paused=paused,
        jobs=tuple(jobs),
        ended=ended,
        failure=failure if ended == "failed" else None,
    )


def _since(
    condition: StreamCondition,
    jobs: Sequence[JobState],
    paused: datetime | None,
    failure: Failure | None,
) -> datetime | None:
    if condition == "paused":
        return paused
    if condition == "waiting":
        return min(job.outage.since for job in jobs if job.is_waiting and job.outage)
    if condition == "failed" and failure is not None:
        return failure.at
    if all(job.state in ("running", "paused") for job in jobs):
        return min((job.since for job in jobs), default=None)
    return min(job.renewed for job in jobs if job.state not in ("running", "paused"))


def tables_of_stream(
    layout: Layout, declared: Pipeline, place: Place | None = None
) -> TablesReport:
    """The status of the tables; a damaged table does not hide the others.

    Costs about as much as ``headgate status --checkpoint``: some milliseconds a table. ``place`` is
    where commands in the problems are typed.
    """
    bronze = head_table(layout, declared)
    if not bronze.exists:
        return TablesReport()
    problems: dict[str, str] = {}

    def read_part(part: str, read: Callable[[], _T]) -> _T | None:
        try:
            return read()
        except (HeadgateError, OSError, ValueError, KeyError, TypeError) as error:
            problem = error.text(place) if isinstance(error, HeadgateError) else str(error)
            problems[part] = problem or type(error).__name__
            return None

    return TablesReport(
        account=read_part("account", lambda: _account(layout, declared)),
        savepoints=read_part("savepoints", lambda: savepoints(layout)),
        history=read_part("history", lambda: _history(layout, declared, bronze)),
        freshness=read_part("freshness", lambda: freshness(layout, declared)),
        held=read_part("held", lambda: holds(layout, declared)),
        notices=read_part("set aside", lambda: _notices(layout, declared, place)),
        past=read_part("past", lambda: past(layout, declared, _operations(bronze))),
        problems=problems,
        has_rules=bool(declared.suites),
    )


def _notices(layout: Layout, declared: Pipeline, place: Place | None) -> tuple[Notice, ...]:
    aside = set_aside(layout, declared)
    return tuple(Notice.of(f"{each.source}: {each}.", each.remedy, place) for each in aside)


def _operations(bronze: Table) -> Sequence[Operation]:
    return BronzePayload.of(bronze.refresh()).operations


def _account(layout: Layout, declared: Pipeline) -> Account:
    ledger = balance(layout, declared)
    tables = (gold.table for gold in ledger.gold)
    return Account(ledger, {table: final_up_to(layout, declared, table) for table in tables})


def _history(layout: Layout, declared: Pipeline, bronze: Table) -> tuple[BatchTime, ...]:
    state = bronze.refresh()
    position = TablePosition(bronze, bronze.version, state)
    return batch_times(layout, declared, position, BATCHES)
