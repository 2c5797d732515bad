"""The status of a stream and of its tables, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from headgate.storage.backlog import Backlog
from headgate.storage.failure import Failure
from headgate.supervision.ending import Ended
from headgate.supervision.freshness import Freshness
from headgate.supervision.job_state import JobState
from headgate.supervision.keeping import Condition
from headgate.supervision.past import PastReport


@dataclass(frozen=True)
class StreamStatus:
    """The status of a stream, read from its documents. ``since`` is when the condition began; for a
    stream that does not run, when its lease was last renewed. ``restarts`` counts the drivers that
    replaced a failed or killed one. ``operation`` names the work of an owner that is not a driver,
    such as a restore. ``n`` is bronze's batch; ``rows`` and ``seconds`` are those of the last
    batch. ``clock`` is the watermark, ``level`` the earliest ``updated`` of a ``JobState``.
    ``paused`` is the time of a pause request. ``ended`` is None while the stream runs, if it never
    ran, and if its process was killed; ``failure`` is set if ``ended`` is ``failed``."""

    condition: Condition
    since: datetime | None
    restarts: int
    operation: str | None
    n: int | None
    rows: int | None
    seconds: float | None
    backlog: Backlog | None
    clock: datetime | None
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
class GoldReport:
    """``final`` is the time up to which windows are final; ``lag`` is in batches."""

    table: str
    final: datetime | None
    lag: int
    rows: int
    pairs: int
    late: int


@dataclass(frozen=True)
class Account:
    """The ledger since the tables began. ``late`` is counted in ``pairs`` of a row and a window;
    ``differences`` are the equations of the ledger that do not hold."""

    n: int
    generation: int
    read: int
    duplicate: int
    quarantined: int
    filtered: int
    pairs: int
    late: int
    gaps: int
    differences: tuple[str, ...]
    gold: tuple[GoldReport, ...]


@dataclass(frozen=True)
class SavepointReport:
    id: str
    created: datetime
    n: int
    note: str


@dataclass(frozen=True)
class SavepointsReport:
    """``newest`` has at most 50 savepoints, the newest first, without the ``damaged`` ones."""

    number: int
    damaged: int
    newest: tuple[SavepointReport, ...]


@dataclass(frozen=True)
class BatchReport:
    n: int
    committed: datetime
    took: timedelta
    rows: int


@dataclass(frozen=True)
class HoldReport:
    """``table``, a gold table or the rebuild of one, stays at batch id ``n``, because later
    versions break its rules."""

    table: str
    n: int
    since: datetime
    rules: tuple[str, ...]


@dataclass(frozen=True)
class TablesReport:
    """The status of the tables. A part that could not be read is None, and ``problems`` has the
    reason under its name. ``history`` has the oldest batch first, ``held`` the gold tables that
    their gates hold. ``has_rules``: the pipeline has rules, so its quality can be reported."""

    account: Account | None = None
    savepoints: SavepointsReport | None = None
    history: tuple[BatchReport, ...] | None = None
    freshness: Freshness | None = None
    held: tuple[HoldReport, ...] | None = ()
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
            "n": job.n,
            "backlog": None if job.backlog is None else str(job.backlog),
            "renewed": job.renewed,
        }
        for job in status.jobs
    ]
    if (behind := status.backlog) is not None:
        details = {"seconds": behind.seconds, "holding": behind.holding, "says": str(behind)}
        content["backlog"] |= details
    plain: dict[str, Any] = _plain(content)
    return plain


def tables_document(tables: TablesReport) -> dict[str, Any]:
    """Plain values: times in ISO 8601, spans in seconds."""
    content = asdict(tables)
    if tables.freshness is not None:
        content["freshness"]["changed"] = tables.freshness.changed
    plain: dict[str, Any] = _plain(content)
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value.total_seconds() if isinstance(value, timedelta) else value
