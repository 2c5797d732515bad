"""Restores a savepoint. This process must hold the lease.

Silver, gold, late and quarantine tables get the files of the savepoint. Bronze and the files log
stay, and the stages catch up from bronze. With ``reread`` bronze is reset too.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from headgate.commands import NEW_ROOT, pipeline_command
from headgate.declaration.graph import graph_of
from headgate.declaration.model import Pipeline
from headgate.failpoints import failpoint
from headgate.history.loads.reopening import take_back_loads
from headgate.history.savepoints.bronze_lineage import BronzeLineage
from headgate.history.savepoints.errors import SavepointError
from headgate.history.savepoints.resets import (
    ResetIntent,
    Resets,
    ResetTarget,
    intend_reset,
    is_built,
)
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.verify import passed_over, verify_savepoint
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import lineage
from headgate.lake.tables.payloads.bronze import BronzePayload, Operation
from headgate.lake.tables.snapshot import tables_of
from headgate.lake.tables.table import Table


def restore_savepoint(
    layout: Layout,
    pipeline: Pipeline,
    savepoint: Savepoint,
    epoch: int,
    now: datetime,
    *,
    reread: bool = False,
) -> ResetIntent:
    """Restore a savepoint in place. ``epoch`` is that of the lease over all layers.

    Repeatable: after a kill, the next restore or the next driver finishes it. Raises SavepointError
    if a needed file is missing or the savepoint is not in bronze's lineage, FencedError,
    CommitRefusedError. Tables that are neither declared nor present are skipped.
    """
    gone = passed_over(layout, pipeline, savepoint)
    if problems := verify_savepoint(layout, pipeline.name, savepoint, passing=gone):
        raise SavepointError(
            f"savepoint {savepoint.id} cannot be restored: {problems[0].table} {problems[0].what}"
            + (f", and {len(problems) - 1} more" if problems[1:] else ""),
            remedy=f"{pipeline_command('savepoint verify', savepoint.id)}; "
            f"older ones: {pipeline_command('savepoint list')}",
        )
    tables = {table.name: table for table in tables_of(layout, pipeline.name)}
    if (head := graph_of(pipeline).head.path) not in tables:
        raise SavepointError(
            f"the tables have no {head}: the source has another name in the declaration",
            remedy="use the name that the tables were built with: "
            + pipeline_command("plan", "--deployed"),
        )
    for table in tables.values():
        table.fence(epoch)
        failpoint("restore.fenced")
    bronze = tables[head]
    if not reread:
        _require_in_lineage(savepoint, bronze)
    targets = savepoint.targets()
    if reread:
        # Record the loads that are taken back first: a repair cannot rely on bronze's log.
        state = next(lineage(bronze.reader(), savepoint.bronze.version)).state
        take_back_loads(layout, BronzePayload.of(state), graph_of(pipeline).head.name)
    # A table that is newer than the savepoint is emptied and catches up.
    declared = pipeline.definitions
    younger = (path for path in tables if is_built(path) and path not in targets)
    targets |= {path: ResetTarget(keep=path not in declared) for path in younger}
    # Request the reset of all tables, even if the same restore was interrupted: tables that it had
    # reset may have processed batches since.
    intent = intend_reset(
        bronze,
        {path: target for path, target in targets.items() if path in tables},
        now,
        why=f"restore of savepoint {savepoint.id}" + (", bronze too" if reread else ""),
        savepoint=savepoint.id,
        reread=savepoint.bronze.target if reread else None,
        asked=_operations_at(savepoint, bronze),
    )
    Resets(bronze).carry_out(tables.values(), now)
    _prove(savepoint, tables, intent)
    return intent


def _operations_at(savepoint: Savepoint, bronze: Table) -> Sequence[Operation] | None:
    """The operations that bronze had at a savepoint; None if its log no longer has that commit."""
    with suppress(LogGapError):
        for commit in lineage(bronze.reader(), savepoint.bronze.version):
            return BronzePayload.of(commit.state).operations
    return None


def _require_in_lineage(savepoint: Savepoint, bronze: Table) -> None:
    """Raises SavepointError if bronze was reset since and has other batches now."""
    if not BronzeLineage(bronze).has(savepoint):
        raise SavepointError(
            f"savepoint {savepoint.id} cannot be restored without bronze: bronze has since been "
            "reset to a batch before it, and has other batches after that point",
            remedy="restore bronze too, and read the source again from there: "
            + pipeline_command("savepoint restore", savepoint.id, "--reread")
            + "; or make a copy: "
            + pipeline_command("savepoint restore", savepoint.id, "--to", NEW_ROOT),
        )


def _prove(savepoint: Savepoint, tables: dict[str, Table], intent: ResetIntent) -> None:
    """Check that every table has exactly the files and the position of the savepoint."""
    for path, target in intent.tables.items():
        saved, state = savepoint.tables.get(path), tables[path].refresh()
        tables[path].require_intact()
        wanted = (saved.files, saved.n) if saved else (target.files, 0)
        if target.keep:
            wanted = state.files, 0
        if (state.files, state.n) != wanted:
            raise LogGapError(
                f"{path}: after the restore it differs from the savepoint",
                remedy="restore it again; if that does not help, report it",
            )
