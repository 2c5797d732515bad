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
from headgate.maintenance.compaction import LIMITS, Limits, eligible, groups
from headgate.maintenance.needs import unpublished
from headgate.maintenance.report import Amount, Compacted, Vacuumed
from headgate.maintenance.retention_context import Surroundings, all_savepoints, look_around
from headgate.maintenance.rewriting import merge, replace_files
from headgate.maintenance.vacuum import list_files, plan, remove
from headgate.storage.layout import Layout
from headgate.tables.history import with_footers
from headgate.tables.live_files import live_files
from headgate.tables.log_folder import log_folder
from headgate.tables.table import Table

Turn = Callable[[], AbstractContextManager[None]]
"""The turn of whoever writes the tables: no batch of theirs runs meanwhile."""

Clock = Callable[[], datetime]


def compact(
    layout: Layout,
    pipeline: Pipeline,
    tables: Iterable[Table],
    turn: Turn,
    clock: Clock,
    limits: Limits = LIMITS,
) -> Iterator[Compacted | None]:
    """Merge small files of tables that this process writes: None after each step, a report after
    each table. Batches wait for commits only.

    Raises NotLevelError, LogGapError, DamagedFileError, CommitRefusedError, FencedError.
    """
    around = look_around(layout, pipeline)
    for table in tables:
        if table.name in around.cut.tables:
            yield from _compact(table, around, turn, clock, limits)


def vacuum_tables(
    layout: Layout,
    pipeline: Pipeline,
    tables: Iterable[Table],
    keep_for: timedelta,
    turn: Turn,
    clock: Clock,
) -> Iterator[Vacuumed | None]:
    """Remove what nothing needs of tables that this process writes: None after each step, a report
    after each table. Batches wait while the files of a table are listed.

    Raises NotLevelError, LogGapError, FencedError.
    """
    around = look_around(layout, pipeline)
    for table in tables:
        if table.name in around.cut.tables:
            with turn():
                listed = list_files(table)
            # Those taken meanwhile count too; how far tables were is a bound that only rises.
            around = replace(around, savepoints=all_savepoints(layout))
            found = plan(table.reader(), listed, around, keep_for, clock())
            yield from remove(found)
            yield found.report


def _compact(
    table: Table, around: Surroundings, turn: Turn, clock: Clock, limits: Limits
) -> Iterator[Compacted | None]:
    view = table.reader()
    state = view.refresh()
    live = live_files(view.handle)
    # A files log counts landing files, and nobody follows its commits.
    upto = around.n if kind_of(table.name) in RECORDS else state.n
    waiting = unpublished(view, log_folder(view.storage), around)
    cuts = around.operations if kind_of(table.name) in (BRONZE, SILVER) else ()
    found = groups(eligible(table.name, live, upto, waiting), cuts, limits)
    every = (file for group in found for file in group)
    described = {f.path: f for f in with_footers(view, view.handle.version(), every)}
    merged, into = Amount(), Amount()
    for group in found:
        file = yield from merge(view, state, [described[f.path] for f in group])
        with turn():
            done = replace_files(table, group, file, clock())
        if done:
            merged, into = merged + Amount.of(*group), into + Amount.of(file)
        yield None
    view.refresh()
    small = (file for file in live_files(view.handle) if file.size < limits.small)
    yield Compacted(table.name, merged, into, Amount.of(*small))
