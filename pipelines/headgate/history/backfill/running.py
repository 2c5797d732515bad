"""One backfill from its plan to its report, and the request that publishes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from headgate.declaration.kinds import BRONZE, GOLD, LATE
from headgate.declaration.model import GoldTable, Pipeline
from headgate.failpoints import failpoint
from headgate.flow.operations.backfill import NAME, Patch
from headgate.history.backfill.plan import BackfillPlan, plan_backfill
from headgate.history.backfill.report import BackfillReport, write_report
from headgate.history.backfill.selection import LATEST, EventTimeRange, first_begin
from headgate.history.savepoints.holds import FOLDER, record_hold
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import settled_snapshot
from headgate.lake.control.requests import Request, send_request
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.snapshot import ConsistentSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    Sessions = Callable[[], AbstractContextManager[SparkSession]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class BackfillScope:
    """What a backfill computes: the windows of gold tables, by name, that are in the event times
    ``[begin, end)``; with ``by_end`` those that end in ``(begin, end]``, also if they began before.
    ``deployed`` is the declaration that the tables were made from, ``used`` the one that computes
    them again."""

    deployed: Pipeline
    used: Pipeline
    tables: Sequence[str]
    begin: datetime
    end: datetime | None
    by_end: bool = False

    @property
    def ranges(self) -> Mapping[str, EventTimeRange]:
        """The range of each table, in which its windows lie completely; empty if it has none."""
        return {name: self._range_of(self.deployed.gold[name]) for name in self.tables}

    def _range_of(self, table: GoldTable) -> EventTimeRange:
        begin, end = _micros(self.begin), LATEST if self.end is None else _micros(self.end)
        first = first_begin(table, begin, end) if self.by_end else begin
        return EventTimeRange(end if first is None else first, end)


@dataclass(frozen=True)
class BackfillOutcome:
    """``patches`` are those of the tables that differ, at the ``generation`` of the tables."""

    report: BackfillReport
    patches: Mapping[str, Patch]
    generation: int


def _micros(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1)


def preview_backfill(
    layout: Layout, asked: BackfillScope
) -> tuple[ConsistentSnapshot, BackfillPlan]:
    """What a backfill would read. Nothing is held, so a vacuum may remove it meanwhile. Raises
    HeadgateError if there are no tables, ResetOpenError, NotBackfilledError,
    OtherDeclarationError, LogGapError, DamagedFileError."""
    at = settled_snapshot(layout, asked.deployed)
    return at, plan_backfill(at, asked.deployed, asked.used, asked.ranges)


def compute_backfill(
    layout: Layout, asked: BackfillScope, id_: str, sessions: Sessions, now: datetime
) -> BackfillOutcome:
    """Compute, compare, and keep the report. The caller holds the folder ``id_``
    (``history.savepoints.holds``). Raises as ``preview_backfill``."""
    at = settled_snapshot(layout, asked.deployed)
    record_hold(layout, id_, _read(at, asked, now))
    failpoint("backfill.held")
    # A plan may read duplicates of bronze for long, so a vacuum must keep them by now.
    plan = plan_backfill(at, asked.deployed, asked.used, asked.ranges)
    with sessions() as spark:
        from headgate.history.backfill.computing import BackfillComputation

        runs = BackfillComputation(spark, layout, asked.used, plan, f"{FOLDER}/{id_}").run(now)
        found = {each.report.table: each for each in runs}
    report = BackfillReport(
        id=id_,
        pipeline=asked.deployed.name,
        at=now,
        begin=asked.begin,
        end=asked.end,
        by_end=asked.by_end,
        declaration=asked.used.digest,
        file=asked.used.file.name,
        is_own=asked.used.file.resolve() == asked.deployed.file.resolve(),
        tables=tuple(each.report for each in found.values()),
    )
    write_report(layout, report)
    failpoint("backfill.reported")
    patches = {name: each.patch for name, each in found.items() if each.patch is not None}
    return BackfillOutcome(report, patches, at.decisions.generation)


def _read(at: ConsistentSnapshot, asked: BackfillScope, now: datetime) -> Savepoint:
    """The tables that a backfill reads, as a savepoint, so that a vacuum keeps them."""
    paths = {*map(BRONZE.path, at.bronze)}
    paths |= {kind.path(name) for kind in (GOLD, LATE) for name in asked.tables}
    tables = {path: position for path, position in at.tables.items() if path in paths}
    return Savepoint.of(replace(at, tables=tables), asked.deployed.name, "", now)


def ask_to_publish(
    layout: Layout, outcome: BackfillOutcome, savepoint: str, by: str, now: datetime
) -> Request:
    """Request the publication of all patches of a backfill: one intent, and one commit per
    table."""
    tables = {name: asdict(patch) for name, patch in outcome.patches.items()}
    document: dict[str, Any] = {
        "backfill": outcome.report.id,
        "declaration": {"file": outcome.report.file, "is_own": outcome.report.is_own},
        "generation": outcome.generation,
        "tables": tables,
        "savepoint": savepoint,
        "by": by,
    }
    request = send_request(layout, NAME, document, now)
    failpoint("backfill.asked")
    return request
