"""Restores a savepoint. This process must hold the lease.

Silver, gold, late and quarantine tables get the files of the savepoint. Bronze, the files log and
the decisions stay, and the stages catch up from bronze. With ``reread`` bronze is reset, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from headgate.commands import NEW_ROOT, pipeline_command
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import BRONZE, INPUTS, NUMBERING, kind_of, name_of
from headgate.declaration.model import Pipeline
from headgate.failpoints import failpoint
from headgate.history.savepoints.errors import SavepointError
from headgate.history.savepoints.resets import (
    BatchIdentity,
    ResetIntent,
    Resets,
    ResetTarget,
    decide_reset,
    is_built,
    void_after_restore,
)
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.verify import passed_over, verify_savepoint
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import DECISIONS, ControlTable, Decisions, position_of
from headgate.lake.tables.errors import LogGapError
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
    bronze = {node.name: tables.get(node.path) for node in graph_of(pipeline).of(BRONZE)}
    if missing := [BRONZE.path(name) for name, table in bronze.items() if table is None]:
        raise SavepointError(
            f"the tables have no {missing[0]}: the source has another name in the declaration",
            remedy="use the name that the tables were built with: "
            + pipeline_command("plan", "--deployed"),
        )
    for table in tables.values():
        table.fence(epoch)
        failpoint("restore.fenced")
    graph = graph_of(pipeline)
    declared_now = {n.path: n.name for n in graph.of(*NUMBERING) if n.path in tables}
    # The input log of tables that are not declared now stays, or goes back, with them.
    numbering = declared_now | {p: name_of(p) for p in tables if kind_of(p) == INPUTS}
    control = ControlTable(tables[DECISIONS])
    decisions = control.refresh()
    targets, back_to = savepoint.targets(), dict[str, BatchIdentity | None]()
    if reread:
        # Bronze of a source that is no longer declared stays: nobody reads the source again.
        for path, name in numbering.items():
            if path in savepoint.tables:
                saved = savepoint.tables[path]
                targets[path], back_to[name] = saved.target, saved.batch
            elif kind_of(path) == INPUTS:
                targets[path], back_to[name] = ResetTarget(), None
        require_left_of_lineage(savepoint, decisions, savepoint.bronze.keys() - back_to.keys())
    else:
        require_of_lineage(savepoint, decisions)
    # A table that is newer than the savepoint is emptied and catches up.
    declared = pipeline.definitions
    younger = (p for p in tables if is_built(p) and p not in targets and p not in numbering)
    targets |= {path: ResetTarget(keep=path not in declared) for path in younger}
    position = position_of({name: tables[path] for path, name in declared_now.items()})
    # Reset all tables, even if the same restore was interrupted: tables that it had reset may have
    # processed batches since.
    intent = decide_reset(
        control,
        {path: target for path, target in targets.items() if path in tables},
        position,
        now,
        why=f"restore of savepoint {savepoint.id}" + (", bronze too" if reread else ""),
        void=void_after_restore(
            decisions, savepoint.decision, {**position, **savepoint.numbering}, back_to
        ),
        savepoint=savepoint.id,
        decision=savepoint.decision,
        back_to=back_to,
    )
    Resets(control).carry_out(tables.values(), now)
    _prove(savepoint, tables, intent)
    return intent


def require_of_lineage(savepoint: Savepoint, decisions: Decisions) -> None:
    """Raises SavepointError if bronze was reset since and has other batches now."""
    if not savepoint.is_of_lineage(decisions):
        raise SavepointError(
            f"savepoint {savepoint.id} cannot be restored without bronze: bronze has since been "
            "reset to a batch before it, and has other batches after that point",
            remedy="restore bronze too, and read the source again from there: "
            + pipeline_command("savepoint restore", savepoint.id, "--reread")
            + "; or make a copy: "
            + pipeline_command("savepoint restore", savepoint.id, "--to", NEW_ROOT),
        )


def require_left_of_lineage(
    savepoint: Savepoint, decisions: Decisions, left: Iterable[str]
) -> None:
    """Raises SavepointError if bronze of a source that is no longer declared was reset since: its
    silver and gold would get batches that its bronze no longer has."""
    for source in left:
        if not savepoint.is_of_lineage(decisions, (source,)):
            raise SavepointError(
                f"savepoint {savepoint.id} cannot be restored: {BRONZE.path(source)} was reset to "
                "a batch before it, and stays as it is, because its source is no longer declared",
                remedy="declare the source again, so that it is read again, too; "
                "or make a copy: "
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
