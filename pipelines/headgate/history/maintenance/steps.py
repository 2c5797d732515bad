"""Maintenance of the tables that one process writes, in steps between which batches may run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta

from headgate.declaration.kinds import (
    BRONZE,
    RECORDS,
    SILVER,
    kind_of,
)
from headgate.declaration.model import Pipeline
from headgate.history.maintenance.compaction import (
    DEFAULT_LIMITS,
    CompactionLimits,
    merge_files,
    merge_groups,
    mergeable_files,
    replace_files,
)
from headgate.history.maintenance.needs import unpublished_files
from headgate.history.maintenance.report import Amount, Compacted, Vacuumed
from headgate.history.maintenance.retention_context import (
    RetentionContext,
    all_savepoints,
    read_context,
)
from headgate.history.maintenance.vacuum import list_files, plan_vacuum, remove_unneeded
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.history import with_footers
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import list_log
from headgate.lake.tables.table import Table

TurnOf = Callable[[str], AbstractContextManager[object]]
"""Takes the turn of maintenance in a table: no batch writes it meanwhile."""

Clock = Callable[[], datetime]


def compact_tables(
    layout: Layout,
    pipeline: Pipeline,
    tables: Iterable[Table],
    turn_of: TurnOf,
    clock: Clock,
    limits: CompactionLimits = DEFAULT_LIMITS,
) -> Iterator[Compacted | None]:
    """Merge small files of the tables that this process writes. Yields None after each step, and a
    report after each table. Batches wait for commits only.

    Raises NotLevelError, LogGapError, DamagedFileError, CommitRefusedError, FencedError.
    """
    context = read_context(layout, pipeline)
    for table in tables:
        if table.name in context.snapshot.tables:
            yield from _compact(table, context, turn_of, clock, limits)


def vacuum_tables(
    layout: Layout,
    pipeline: Pipeline,
    tables: Iterable[Table],
    keep_for: timedelta,
    turn_of: TurnOf,
    clock: Clock,
) -> Iterator[Vacuumed | None]:
    """Remove files and log entries that nothing needs from the tables that this process writes.
    Yields None after each step, and a report after each table. Batches wait while the files of a
    table are listed.

    Raises NotLevelError, LogGapError, FencedError.
    """
    context = read_context(layout, pipeline)
    for table in tables:
        if table.name in context.snapshot.tables:
            with turn_of(table.name):
                listed = list_files(table)
            # New savepoints count too. The positions in the context are a lower bound.
            context = replace(context, savepoints=all_savepoints(layout))
            found = plan_vacuum(table.reader(), listed, context, keep_for, clock())
            yield from remove_unneeded(found)
            yield found.report


def _compact(
    table: Table,
    context: RetentionContext,
    turn_of: TurnOf,
    clock: Clock,
    limits: CompactionLimits,
) -> Iterator[Compacted | None]:
    view = table.reader()
    state = view.refresh()
    live = live_files(view.handle)
    # A files log counts landing files, and no stage follows its commits.
    upto = context.n(table.name) if kind_of(table.name) in RECORDS else state.n
    waiting = unpublished_files(view, list_log(view.storage), context)
    boundaries = context.boundaries(table.name) if kind_of(table.name) in (BRONZE, SILVER) else ()
    found = merge_groups(mergeable_files(table.name, live, upto, waiting), boundaries, limits)
    every = (file for group in found for file in group)
    described = {f.path: f for f in with_footers(view, view.version, every)}
    merged, into = Amount(), Amount()
    for group in found:
        file = yield from merge_files(view, state, [described[f.path] for f in group])
        with turn_of(table.name):
            done = replace_files(table, group, file, clock())
        if done:
            merged, into = merged + Amount.of(*group), into + Amount.of(file)
        yield None
    view.refresh()
    small = (file for file in live_files(view.handle) if file.size < limits.small)
    yield Compacted(table.name, merged, into, Amount.of(*small))
