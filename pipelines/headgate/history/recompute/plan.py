"""What is read to compute gold tables again at one position: plain functions, without Spark.

Silver is read as of the gold table's batch. The late table may be ahead: its pairs of later batches
are not in this silver, and marks of later replays are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from deltalake.exceptions import DeltaError

from headgate.commands import pipeline_command
from headgate.declaration.contracts.operator import begin_of, bounds_of
from headgate.declaration.kinds import GOLD, INPUTS, LATE, SILVER, kind_of
from headgate.declaration.model import GoldTable, Pipeline
from headgate.errors import UsageError
from headgate.flow.gold.rollup.following import final_files_within
from headgate.flow.operations.backfill import Patch
from headgate.history.backfill.plan import position_as_declared
from headgate.history.backfill.selection import (
    EVERYTHING,
    LATEST,
    EventTimeRange,
    earlier,
    event_times_read,
)
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.decisions import Decision
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import files_at
from headgate.lake.tables.live_files import overlapping_files
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.snapshot import (
    ConsistentSnapshot,
    TablePosition,
    followed_by,
    silver_read,
)
from headgate.lake.tables.spans import Span
from headgate.lake.tables.table import Table

WHOLE = EventTimeRange(-LATEST)
_TIME = "_event_time"


@dataclass(frozen=True)
class AppliedPatch:
    """The patch of the published backfill ``id``, which a table has taken over as the operation
    ``number``."""

    number: int
    id: str
    patch: Patch


@dataclass(frozen=True)
class RecomputeInputs:
    """The tables that a gold table reads, by their names, its late table, and their files; a rollup
    has no late table. ``above`` is the gold table that a rollup reads."""

    upstream: Mapping[str, Table]
    files: Mapping[str, tuple[DataFile, ...]]
    late: Table | None = None
    late_files: tuple[DataFile, ...] = ()
    above: GoldTable | None = None


@dataclass(frozen=True)
class RecomputeTarget:
    """The results in ``range`` of a gold table, at its position ``gold``. The files are those that
    may have rows of these results. ``patches`` are those that may have changed one of them, in the
    order in which the table has taken them over."""

    declared: GoldTable
    range: EventTimeRange
    gold: TablePosition
    gold_files: tuple[DataFile, ...]
    inputs: RecomputeInputs
    patches: tuple[AppliedPatch, ...]


def require_ranges(tables: Iterable[GoldTable]) -> None:
    """Raises UsageError if the results of a table are no ranges of time."""
    for table in tables:
        if not bounds_of(table):
            raise UsageError(
                f"gold.{table.name} has no windows of time, so no range of time has results of its "
                "own",
                remedy="compare the whole table: "
                + pipeline_command("ledger", "--recompute", "--table", f"gold.{table.name}")
                + "; with --from and --to, name the other tables with --table",
            )


def plan_recompute(
    at: ConsistentSnapshot, deployed: Pipeline, ranges: Mapping[str, EventTimeRange]
) -> tuple[RecomputeTarget, ...]:
    """What is read for a range of each of some gold tables, by name; ``WHOLE`` for all results.

    Raises OtherDeclarationError, LogGapError.
    """
    return tuple(
        _target(at, deployed, deployed.gold[name], wanted) for name, wanted in ranges.items()
    )


def _target(
    at: ConsistentSnapshot, deployed: Pipeline, declared: GoldTable, wanted: EventTimeRange
) -> RecomputeTarget:
    gold = position_as_declared(at, deployed, GOLD.path(declared.name))
    begin = begin_of(declared)
    is_whole = wanted == WHOLE or not begin
    spans = [EVERYTHING] if is_whole else wanted.spans
    longest = GoldPayload.of(gold.state).longest
    read = event_times_read(declared, spans)
    of = _of_silver if declared.reads is None else _of_gold
    return RecomputeTarget(
        declared=declared,
        range=wanted,
        gold=gold,
        gold_files=overlapping_files(
            gold.handle, (*begin, "updated_at")[0], earlier(spans, longest)
        ),
        inputs=of(at, deployed, declared, gold, read),
        patches=tuple(_patches(at.decisions.operations, declared.name, gold, wanted)),
    )


def _of_gold(
    at: ConsistentSnapshot,
    deployed: Pipeline,
    declared: GoldTable,
    gold: TablePosition,
    spans: Sequence[Span],
) -> RecomputeInputs:
    assert declared.reads is not None
    above = deployed.gold[declared.reads]
    position = followed_by(position_as_declared(at, deployed, GOLD.path(above.name)), gold)
    files = final_files_within(above, position, spans)
    return RecomputeInputs({above.name: position.table}, {above.name: files}, above=above)


def _of_silver(
    at: ConsistentSnapshot,
    deployed: Pipeline,
    declared: GoldTable,
    gold: TablePosition,
    spans: Sequence[Span],
) -> RecomputeInputs:
    late = position_as_declared(at, deployed, LATE.path(declared.name))
    silver = {
        name: position_as_declared(at, deployed, SILVER.path(name)) for name in declared.inputs
    }
    read, upstream = silver_read(declared, gold.state), {n: p.table for n, p in silver.items()}
    path = GOLD.path(declared.name)
    logs = (each for each in at.graph[path].upstream if kind_of(each) == INPUTS)
    return RecomputeInputs(
        upstream | {each: at.tables[each].table for each in logs},
        {name: _silver_files(each, gold, read[name], spans) for name, each in silver.items()},
        late.table,
        overlapping_files(late.handle, _TIME, spans),
    )


def _silver_files(
    silver: TablePosition, gold: TablePosition, n: int, spans: Iterable[tuple[int, int]]
) -> tuple[DataFile, ...]:
    """The files of silver as of batch ``n``."""
    wanted, name = list(spans), silver.table.name.replace("/", ".")
    gone = LogGapError(
        f"{name}: its files as of batch {n:,} were removed by a vacuum, and {gold.table.name} is "
        "at this batch",
        remedy=f"type the command again when the table has caught up: {pipeline_command('status')}",
    )
    try:
        found = files_at(silver.table, n, lambda each: overlapping_files(each, _TIME, wanted))
    except DeltaError as error:
        raise gone from error
    if silver.n > n and not all(silver.table.storage.exists(file.path) for file in found):
        raise gone
    return found


def _patches(
    operations: Iterable[Decision], name: str, gold: TablePosition, wanted: EventTimeRange
) -> Iterable[AppliedPatch]:
    applied = GoldPayload.of(gold.state).backfills
    for each in operations:
        if (span := applied.get(str(each.number))) is None:
            continue
        if span[0] < wanted.end and span[1] >= wanted.begin:
            patch = Patch.of(each.document["tables"][name])
            yield AppliedPatch(each.number, str(each.document["backfill"]), patch)
