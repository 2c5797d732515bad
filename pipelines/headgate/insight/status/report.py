"""The status of a stream and of its tables: plain values, and how they are read.

Nothing here starts a JVM or reads a data file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

from headgate.commands import Place, commands_in, rendered
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.flow.gates.documents import Hold, holds
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import UnreadableSavepoint, savepoints
from headgate.insight.final_periods.finality import final_up_to
from headgate.insight.ledger import Ledger, balance
from headgate.insight.status.batch_times import BatchTime, batch_times
from headgate.insight.status.freshness import Freshness, freshness
from headgate.insight.status.past import PastReport, past
from headgate.insight.status.set_aside import set_aside
from headgate.lake.control.driver_reports import Failure, SourceProgress, last_failure
from headgate.lake.control.driver_requests import paused_since, stop_asked
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable
from headgate.supervision.job_state import Ended, JobState, how_ended
from headgate.supervision.supervisor import StreamCondition, observe

SAVEPOINTS = 50
"""How many savepoints are in the document of the tables at most: the newest ones."""


@dataclass(frozen=True)
class StreamStatus:
    """The status of a stream, read from its documents. ``since`` is when the condition began; for a
    stream that does not run, when its lease was last renewed. ``restarts`` counts the drivers that
    replaced a failed or killed one. ``operation`` names the work of an owner that is not a driver,
    such as a restore. ``sources`` are as the job that reads them reports. ``rows`` and ``seconds``
    are those of its last batch, ``level`` is the earliest ``updated`` of a ``JobState``. ``paused``
    is the time of a pause request. ``ended`` is None while the stream runs, if it never ran, and if
    its process was killed; ``failure`` is set if ``ended`` is ``failed``."""

    condition: StreamCondition
    since: datetime | None
    restarts: int
    operation: str | None
    sources: Mapping[str, SourceProgress]
    rows: int | None
    seconds: float | None
    level: datetime | None
    trouble: str | None
    paused: datetime | None
    jobs: tuple[JobState, ...]
    ended: Ended | None = None
    failure: Failure | None = None

    @property
    def is_alive(self) -> bool:
        return any(job.is_alive for job in self.jobs)


@dataclass(frozen=True)
class Account:
    """The ledger since the tables began. ``final`` is the time up to which each gold table is
    final."""

    ledger: Ledger
    final: Mapping[str, datetime | None]


@dataclass(frozen=True)
class Notice:
    """Something that waits for a person. ``remedy`` is what to do, ``commands`` are the commands in
    it as they can be typed."""

    says: str
    remedy: str
    commands: tuple[str, ...]

    @staticmethod
    def of(says: str, remedy: str, place: Place | None) -> Notice:
        typed = rendered(remedy, place)
        return Notice(rendered(says, place), typed, commands_in(remedy, place))


@dataclass(frozen=True)
class TablesReport:
    """The status of the tables. A part that could not be read is None, and ``problems`` has the
    reason under its name. ``savepoints`` has the newest first, ``history`` the oldest batch of each
    source, and ``held`` the gold tables that their gates hold. ``notices`` are about input that the
    tables lack. ``has_rules``: the pipeline has rules, so its quality can be reported."""

    account: Account | None = None
    savepoints: Sequence[Savepoint | UnreadableSavepoint] | None = None
    history: Mapping[str, Sequence[BatchTime]] | None = None
    freshness: Freshness | None = None
    held: Sequence[Hold] | None = ()
    notices: Sequence[Notice] | None = ()
    past: PastReport | None = None
    problems: Mapping[str, str] = field(default_factory=dict)
    has_rules: bool = False


def status_document(status: StreamStatus) -> dict[str, Any]:
    """Plain values: times in ISO 8601, spans in seconds."""
    content = asdict(status) | {"is_alive": status.is_alive}
    content["jobs"] = [
        {
            "job": job.job,
            "state": job.state,
            "process": f"{job.owner.pid} on {job.owner.host}",
            "sources": {
                name: {"n": each.n, "backlog": each.backlog and str(each.backlog)}
                for name, each in job.sources.items()
            },
            "renewed": job.renewed,
        }
        for job in status.jobs
    ]
    content["sources"] = {name: _source_document(each) for name, each in status.sources.items()}
    plain: dict[str, Any] = _plain(content)
    return plain


def _source_document(source: SourceProgress) -> dict[str, Any]:
    behind, failure = source.backlog, source.failure
    details = behind and asdict(behind) | {
        "seconds": behind.seconds,
        "holding": behind.holding,
        "says": str(behind),
    }
    return {
        **_part(source, "n watermark set_aside"),
        "backlog": details,
        "outage": source.outage and source.outage.since,
        "failure": failure and asdict(failure),
    }


def tables_document(tables: TablesReport) -> dict[str, Any]:
    """What the page shows, as plain values: times in ISO 8601, spans in seconds."""
    fresh, held, batches = tables.freshness, tables.held, tables.history
    document: dict[str, Any] = _plain(
        {
            "account": tables.account and _account_document(tables.account),
            "savepoints": None if tables.savepoints is None else _savepoints(tables.savepoints),
            "history": batches
            and {
                source: [_part(each, "n committed took done rows") for each in found]
                for source, found in batches.items()
            },
            "freshness": fresh and asdict(fresh) | {"changed": fresh.changed},
            "held": held and [_held(each) for each in held],
            "notices": tables.notices and [asdict(each) for each in tables.notices],
            "past": tables.past and asdict(tables.past),
            "problems": tables.problems,
            "has_rules": tables.has_rules,
        }
    )
    return document


def _account_document(account: Account) -> dict[str, Any]:
    """``late`` is counted in ``pairs`` of a row and a window, ``rejected`` in the records that all
    silver tables have read; ``differences`` are the equations of the ledger that do not hold."""
    ledger, gold = account.ledger, account.ledger.gold
    return {
        "n": {source.source: source.n for source in ledger.sources},
        **_part(ledger, "generation read duplicate quarantined rejected set_aside filtered"),
        "silver_read": sum(
            each.read if each.items is None else each.items for each in ledger.silver
        ),
        "pairs": sum(each.pairs for each in gold),
        "late": sum(each.late for each in gold),
        "gaps": len(ledger.gaps),
        "differences": [str(each) for each in ledger.differences],
        "gold": [
            {
                "table": each.table,
                "final": account.final[each.table],
                **_part(each, "source lag rows pairs late"),
            }
            for each in gold
        ],
    }


def _savepoints(found: Sequence[Savepoint | UnreadableSavepoint]) -> dict[str, Any]:
    """``newest`` are those that are not damaged."""
    good = [each for each in found if isinstance(each, Savepoint)]
    return {
        "number": len(found),
        "damaged": len(found) - len(good),
        "newest": [_savepoint(each) for each in good[:SAVEPOINTS]],
    }


def _savepoint(each: Savepoint) -> dict[str, Any]:
    """``n`` has the batch id of each source, by its name."""
    batches = {name: source.n for name, source in each.sources.items()}
    return {**_part(each, "id created note"), "n": batches}


def _held(hold: Hold) -> dict[str, Any]:
    return {
        "table": hold.title,
        **_part(hold, "n since"),
        "rules": [str(r) for r in hold.failed],
        "is_rejectable": hold.is_of_operation,
    }


def _part(of: object, names: str) -> dict[str, Any]:
    return {name: getattr(of, name) for name in names.split()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value.total_seconds() if isinstance(value, timedelta) else value


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
        sources=bronze.sources if bronze else {},
        rows=bronze.rows if bronze else None,
        seconds=bronze.seconds if bronze else None,
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
        return min(job.waits_since for job in jobs if job.waits_since is not None)
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
    control = ControlTable.of(layout.storage, declared.name)
    if not control.exists:
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
        history=read_part("history", lambda: batch_times(layout, declared, BATCHES)),
        freshness=read_part("freshness", lambda: freshness(layout, declared)),
        held=read_part("held", lambda: holds(layout, declared)),
        notices=read_part("set aside", lambda: _notices(layout, declared, place)),
        past=read_part("past", lambda: past(layout, declared, control.refresh())),
        problems=problems,
        has_rules=bool(declared.suites),
    )


def _notices(layout: Layout, declared: Pipeline, place: Place | None) -> tuple[Notice, ...]:
    aside = set_aside(layout, declared)
    return tuple(Notice.of(f"{each.source}: {each}.", each.remedy, place) for each in aside)


def _account(layout: Layout, declared: Pipeline) -> Account:
    ledger = balance(layout, declared)
    tables = (gold.table for gold in ledger.gold)
    return Account(ledger, {table: final_up_to(layout, declared, table) for table in tables})
